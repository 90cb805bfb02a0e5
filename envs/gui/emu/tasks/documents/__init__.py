"""Tasks with documents of their own kinds."""
