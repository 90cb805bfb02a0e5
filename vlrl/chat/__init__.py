"""Talk to a model: in the terminal, or on a page of this machine."""
