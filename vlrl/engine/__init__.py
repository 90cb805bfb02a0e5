"""vLLM in a Ray actor: what it is given, what it is asked, and how it takes new weights."""
