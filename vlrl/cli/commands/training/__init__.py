"""The commands that train a model: `vlrl train`, `sft`, `dpo` and `raft`."""
