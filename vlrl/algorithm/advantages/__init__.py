"""How much better each turn was than what it is compared with: functions of a group's scored trajectories."""
