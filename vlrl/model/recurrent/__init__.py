"""Layers that carry a state from token to token, over packed prefix trees."""
