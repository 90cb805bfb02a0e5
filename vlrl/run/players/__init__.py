"""Who plays the run's samples: the driver itself, or rollout workers."""
