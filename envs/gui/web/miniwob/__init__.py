"""MiniWoB++: its pages, what counts as success, right actions."""
