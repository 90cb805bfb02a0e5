"""Turn trajectories into micro-batches: prefix trees, their layout, and bins without padding."""
