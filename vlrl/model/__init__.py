"""What the trainer does to a transformers model: attention over trees, logprobs, shared features, LoRA."""
