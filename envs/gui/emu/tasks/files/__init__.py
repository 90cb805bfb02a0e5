"""Tasks with files."""
