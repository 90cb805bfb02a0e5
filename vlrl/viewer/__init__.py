"""Looking at a run: the report."""
