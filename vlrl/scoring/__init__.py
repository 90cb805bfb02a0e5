"""Scoring: rewards found by name, called with limits in processes of their own, and summed."""
