"""Tasks with mail."""
