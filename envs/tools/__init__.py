"""Tools: typed functions that a model calls in its chat template's own format."""
