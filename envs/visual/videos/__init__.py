"""Short videos and questions about them."""
