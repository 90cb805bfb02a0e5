"""Published sets of GUI agents, as rows of one step each. See `vlrl.envs.gui.datasets.steps`."""
