"""What single apps are made of."""
