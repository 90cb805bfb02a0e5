"""Episodes: sessions of tokens, turns with an environment, groups, and the buffer before training."""
