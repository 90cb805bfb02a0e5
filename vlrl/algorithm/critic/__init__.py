"""What a critic learns from and what its values are used for. Pure functions."""
