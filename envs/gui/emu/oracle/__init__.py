"""The right next action of every task."""
