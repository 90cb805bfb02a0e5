"""The reward for mathematics, in processes of its own."""
