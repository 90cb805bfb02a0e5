"""Files that other hosts see too: shared folders, object stores and whatever else fsspec opens."""
