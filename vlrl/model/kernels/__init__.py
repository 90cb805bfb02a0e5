"""Attention kernels that only GPUs have, each tried against plain attention before a model trains with it."""
