"""How strongly the policy is held back, and by what of its rewards."""
