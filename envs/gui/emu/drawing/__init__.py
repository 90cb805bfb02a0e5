"""Pixels of the emulated desktop: letters, icons, painters, colours."""
