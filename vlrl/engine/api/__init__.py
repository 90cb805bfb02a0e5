"""A trained model behind OpenAI's API: one server of vLLM's, or replicas of it on Ray Serve."""
