"""Structured outputs in the trainer."""
