"""Rewards that read an answer's text: exact, numeric, by overlap, by form, by length."""
