"""What is done about tokens that another policy generated than the one that learns."""
