"""What autograd saves for the backward pass."""
