"""From trajectories to micro-batches: prefix trees, their layout, and bins without padding."""
