"""From rewards to a loss: masks, advantages, credit, losses and corrections. Pure functions."""
