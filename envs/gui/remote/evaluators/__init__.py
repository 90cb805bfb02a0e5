"""OSWorld's own evaluators: its package desktop_env, in an interpreter of its own."""
