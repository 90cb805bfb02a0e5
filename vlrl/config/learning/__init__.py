"""Sections of what a policy learns from, and of its regularizers, beside those of `algorithm`."""
