"""Environments of the `verifiers` library."""
