"""Files at URLs: object stores and whatever else fsspec opens."""
