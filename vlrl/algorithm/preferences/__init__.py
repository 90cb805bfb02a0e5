"""Preference learning: losses of pairs and of labelled completions, and what they make of single tokens."""
