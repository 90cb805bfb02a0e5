"""Code that vlrl did not write: the processes it runs in, and how it fails."""
