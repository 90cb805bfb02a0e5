"""PettingZoo's worlds of several agents."""
