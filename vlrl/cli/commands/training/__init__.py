"""The commands that train a model: `vlrl train`, `sft`, `dpo`, `reward-model` and `raft`."""
