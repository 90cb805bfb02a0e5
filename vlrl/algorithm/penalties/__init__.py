"""Penalties: adaptive coefficients of KL and entropy, and the KL as a part of the reward."""
