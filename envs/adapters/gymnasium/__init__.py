"""Gymnasium's environments, one at a time and as vectors."""
