"""Registered rewards, environments and algorithms."""
