"""Whether a loss keeps the contract that every trainer relies on: `vlrl algorithm check`."""
