"""Whether a function keeps the contract that every trainer relies on: `vlrl algorithm check`."""
