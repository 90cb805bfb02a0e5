"""Clients of engines, in the driver or in a rollout worker."""
