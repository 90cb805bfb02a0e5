"""Turn rewards into a loss: masks, advantages, credit, losses and corrections. Pure functions."""
