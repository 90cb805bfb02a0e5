"""Games played by named moves."""
