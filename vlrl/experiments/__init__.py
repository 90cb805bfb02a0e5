"""Several runs: found and described, compared on the same held-out rows, started for values of options."""
