"""Regularizers on a rank: the reference model, and the pass over all tokens before a step."""
