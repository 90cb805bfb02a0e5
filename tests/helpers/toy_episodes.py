"""Episodes on the toy desktop, drawn by the rollout itself with the tiny processor, without a model."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import toy_desktop
from builders import ScriptedPolicy, make_config, make_context, open_tiny
from toy_desktop import ToyEnv

from vlrl.config.data import DatasetConfig
from vlrl.coordinates import Canvas
from vlrl.data import open_dataset
from vlrl.rollout.groups import rollout_groups
from vlrl.rollout.session import Session
from vlrl.tracking.records import images_of, rollout_records, write_rollouts
from vlrl.types import Group

TOY = f"{toy_desktop.__file__}:ToyEnv"
Say = Callable[[ToyEnv, int], str]


def right(env: ToyEnv, turn: int) -> str:
    """What the oracle says."""
    return env.oracle()


def play_toy(
    model: Path, say: Say, *, num_rows: int = 4, tasks: Sequence[Mapping[str, Any]] = ({},), **options: Any
) -> list[Group]:
    """Groups of two, each action said by `say` of a desktop that stands where the episode's does."""
    processor = open_tiny(model, max_pixels=280 * 210)
    data = DatasetConfig(
        name="env",
        options={"env": TOY, "options": options, "num_rows": num_rows, "tasks": [dict(t) for t in tasks]},
    )
    samples = [processor.sample(row) for row in open_dataset(data, "train")]

    def answer(session: Session, sampling: Any) -> Sequence[int]:
        spec = session.sample.env
        assert spec is not None
        env = ToyEnv(**spec.options)
        env.reset(spec.task, spec.seed)
        turns = session.trajectory("", "ok", 0.0).turns
        for turn in turns:
            env.seen(turn.canvases)
            env.step(turn.text)
        env.seen([Canvas.of(medium) for medium in session.conversation[-1].media])
        return processor.encode_target(say(env, len(turns))).tolist()

    config = make_config(
        model,
        rollout={"prompts_per_step": num_rows, "group_size": 2, "max_tokens": 256},
        generator={"max_model_len": 32768, "max_num_batched_tokens": 32768},
        trainer={"max_tokens_per_micro_batch": 32768},
        env={"isolation": "thread"},
    )

    async def run() -> list[Group]:
        context = make_context(ScriptedPolicy(answer), processor, config)
        with context.host:
            return (await rollout_groups(samples, context, seed_path=(0, 0))).groups

    groups = asyncio.run(run())
    for group in groups:
        for trajectory in group.trajectories:
            assert not trajectory.failed, trajectory.failure
    return groups


def write_toy(run_dir: Path, phase: str, model: Path, groups: list[Group]) -> Path:
    """The groups as a run's rollouts."""
    path = run_dir / "rollouts" / f"{phase}.jsonl"
    records = rollout_records(groups, open_tiny(model), phase=phase, step=0)
    write_rollouts(path, records, images_of(groups))
    return path
