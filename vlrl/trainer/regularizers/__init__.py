"""What holds the policy back, on a rank: the reference, and a look at all tokens before a step."""
