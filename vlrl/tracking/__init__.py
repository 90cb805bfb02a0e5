"""What a run says of itself: metrics, the console, the timeline, rollout records."""
