"""What runs where BrowserGym is installed; nothing of vlrl is there."""
