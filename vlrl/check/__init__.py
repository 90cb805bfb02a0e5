"""What can be known before training: of data, of rewards, of environments."""
