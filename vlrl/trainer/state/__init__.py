"""The state of a rank on disk: written, read, and cut for another number of ranks."""
