"""Adapters merged into the weights that engines and saved models get."""
