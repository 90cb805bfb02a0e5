"""Rejection-sampling SFT, RAFT (arXiv 2304.06767, Algorithm 1): generate, keep the best, imitate them.

    rows ─► samples ─► policy (vLLM) ─► rewards ─► RUN/rollouts/raft.jsonl ─► the best of each prompt ─► SFT

One round of it; for the next one name RUN/model as model.path. Engine and trainer are up one after the other,
so each has the whole machine. `algorithm=raft` does the same with fresh completions in every step.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vlrl import sft
from vlrl.config import Config
from vlrl.config.data import DatasetConfig
from vlrl.process.event_loop import call_page
from vlrl.rollout.groups import rollout_groups, score_groups
from vlrl.run.run import Run
from vlrl.tracking.console import TrainConsole
from vlrl.tracking.rollouts.records import images_of, rollout_records, write_rollouts

ROLLOUTS = "raft.jsonl"


@dataclass(frozen=True, slots=True)
class Rejection:
    """What is generated, and what of it is imitated.

    Attributes:
        num_prompts: training rows that rollout.group_size completions each are generated for; rounded up to
            whole batches of rollout.prompts_per_step.
        min_reward: least reward of a completion that is kept; None keeps any.
        best_of: most completions kept of a prompt.
    """

    num_prompts: int
    min_reward: float | None = None
    best_of: int = 1


def train(
    config: Config | Mapping[str, Any],
    console: TrainConsole | None = None,
    *,
    rejection: Rejection,
    resume: bool = False,
) -> dict[str, object]:
    """Generate, select and train; returns the summary of the supervised run.

    Args:
        config: a config, or a mapping that is one.
        console: where progress is shown; by default on stdout.
        rejection: what is generated, and what of it is kept.
        resume: go on from the last checkpoint, with the completions that were generated then.

    Raises:
        ConfigError: without a reward.
        DataError: if no completion is good enough.
    """

    def page(checked: Config, shown: TrainConsole) -> dict[str, object]:
        sft.require_no_preferences(checked)
        path = checked.run_dir / "rollouts" / ROLLOUTS
        if not (resume and path.is_file()):
            generate(checked, shown, path, rejection.num_prompts)
        return sft.train(imitating(checked, path, rejection), shown, resume=resume)

    return call_page(page, config, console, lambda checked: TrainConsole(checked.run.name, checked.num_steps))


def generate(config: Config, console: TrainConsole, path: Path, num_prompts: int) -> None:
    """Write the scored completions of the first prompts to a file, whole or not at all."""
    size = config.rollout.prompts_per_step
    num_batches = -(-num_prompts // size)
    aside = path.with_suffix(".part")
    aside.unlink(missing_ok=True)
    with Run(config, console, train=False, generate=True) as run:
        console.phase(f"generating for {num_batches * size} prompts")
        for batch in range(num_batches):
            samples = run.stream.batch(batch)
            rolled = run.runner.run(rollout_groups(samples, run.context, seed_path=(config.run.seed, batch)))
            failures = run.runner.run(score_groups(rolled.groups, run.reward.score_all))
            if failures:
                console.note(f"batch {batch + 1}: {len(failures)} completions not scored; {failures[0]}")
            records = rollout_records(rolled.groups, run.processor, phase="raft", step=batch)
            write_rollouts(aside, records, images_of(rolled.groups), append=True)
    os.replace(aside, path)


def imitating(config: Config, path: Path, rejection: Rejection) -> Config:
    """The config with the kept completions as its training rows.

    One that spells a special token of the model cannot be a row: it is dropped and counted, also where
    data.on_broken stops for the user's own rows.
    """
    options = {"path": str(path), "min_reward": rejection.min_reward, "best_of": rejection.best_of}
    rows = DatasetConfig(name="rollouts", options=options)
    data = config.data.model_copy(update={"train": [rows], "on_broken": "drop"})
    return config.model_copy(update={"data": data})
