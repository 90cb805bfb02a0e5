"""Corrections for tokens that another policy generated than the one that is trained."""
