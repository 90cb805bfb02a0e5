"""A run: its folder, its data, checkpoints, recovery and resumption, from start to summary."""
