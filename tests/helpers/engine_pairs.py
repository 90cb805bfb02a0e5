"""A trainer and an engine side by side, and how far apart their log-probabilities are."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from builders import make_context

from vlrl.algorithm.differences import LogprobDifferences
from vlrl.config import Config
from vlrl.engine.policy import VllmPolicy
from vlrl.processors.auto import open_processor
from vlrl.rollout.groups import rollout_groups
from vlrl.run.parity import logprob_differences
from vlrl.trainer.driver import Trainer
from vlrl.types import Group, Sample


@dataclass
class EnginePair:
    """Both engines of a config."""

    config: Config
    processor: Any
    trainer: Trainer
    policy: VllmPolicy

    def sample(self, row_id: str, parts: Sequence[Any]) -> Sample:
        """A question of texts and images, in order."""
        content = [
            {"type": "text", "text": p} if isinstance(p, str) else {"type": "image", "image": p}
            for p in parts
        ]
        row = {"id": row_id, "messages": [{"role": "user", "content": content}]}
        sample: Sample = self.processor.sample(row)
        return sample

    def generate(self, questions: Sequence[Sequence[Any]]) -> list[Group]:
        """A group for each question."""
        return self.play([self.sample(str(number), parts) for number, parts in enumerate(questions)])

    def play(self, samples: Sequence[Sample]) -> list[Group]:
        """A group for each sample."""
        context = make_context(self.policy, self.processor, self.config)
        return asyncio.run(rollout_groups(samples, context, seed_path=(0, 0))).groups

    def differences(self, groups: Sequence[Group], config: Config | None = None) -> LogprobDifferences:
        """How far apart both are on all generated tokens; packed by another config if one is given."""
        return logprob_differences(groups, self.trainer, self.processor.pixels, config or self.config)


@contextmanager
def open_pair(config: Config, engine_model: Path | None = None) -> Iterator[EnginePair]:
    """Start both, the engine with weights of its own if a folder is given."""
    processor = open_processor(config)
    trainer = Trainer(config, processor.banned_token_ids)
    try:
        trainer.wait_ready()
        path = config.model.path if engine_model is None else str(engine_model)
        other = config.model_copy(update={"model": config.model.model_copy(update={"path": path})})
        policy = VllmPolicy(other, processor)
        try:
            policy.wait_ready()
            yield EnginePair(config, processor, trainer, policy)
        finally:
            policy.close()
    finally:
        trainer.close()
