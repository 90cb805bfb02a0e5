"""Sections of what a policy learns from, and of what holds it back, beside those of `algorithm`."""
