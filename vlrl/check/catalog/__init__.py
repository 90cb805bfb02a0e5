"""What is registered: rewards and environments."""
