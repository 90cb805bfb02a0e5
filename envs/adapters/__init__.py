"""Environments of other libraries, as they are."""
