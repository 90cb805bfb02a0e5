"""The commands of `vlrl`, one file each."""
