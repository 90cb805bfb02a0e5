"""An old run's completions under another reward."""
