"""Which process runs on which node and GPU."""
