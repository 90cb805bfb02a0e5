"""Models that a rank holds beside the policy and never trains."""
