"""A plug-in for vlrl: its entry point in pyproject.toml says where the reward is."""
