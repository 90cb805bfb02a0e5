"""Mixtures of experts in the trainer."""
