"""Weights on their way from the trainer to the engines: in buckets, through shared memory or NCCL."""
