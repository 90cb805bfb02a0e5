"""What of vLLM is replaced or watched where an engine runs on a CPU."""
