"""Rewards that compare two images."""
