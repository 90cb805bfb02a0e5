"""Watches a run from its driver: sinks of its numbers, Prometheus, and silence."""
