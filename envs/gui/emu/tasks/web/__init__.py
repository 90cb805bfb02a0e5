"""Tasks in the browser."""
