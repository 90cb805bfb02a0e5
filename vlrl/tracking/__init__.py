"""What a run records: metrics, the console, the timeline, rollout records."""
