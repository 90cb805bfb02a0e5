"""Rewards on what an agent does: one action, or an episode's steps and its end."""
