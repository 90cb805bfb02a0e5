"""Checks before training: of data, rewards, environments and algorithms."""
