"""Reward models: a vision-language model whose head gives a completion one score."""
