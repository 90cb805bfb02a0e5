"""Preference learning: losses of pairs and of labelled completions, and the same as losses of tokens."""
