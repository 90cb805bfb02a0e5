"""What runs where desktop_env is installed; nothing of vlrl is there."""
