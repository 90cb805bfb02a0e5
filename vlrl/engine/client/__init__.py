"""Whoever sends requests to engines, in the driver or in a rollout worker."""
