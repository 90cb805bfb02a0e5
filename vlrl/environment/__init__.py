"""Environments found, run in processes of their own, observed, and served over a network."""
