"""A step of episodes of which many fail in every way: it completes, and counts each failure as what it is."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builders import ScriptedPolicy, TextProcessor, make_config, make_context, text_prompt
from open_files import left_open, open_files

from vlrl.algorithm.credit import assign_credit
from vlrl.rollout.groups import RolloutResult, rollout_groups, score_groups
from vlrl.types import EnvTask, Sample, Score, Trajectory

COUNTDOWN = f"{Path(__file__).parents[1] / 'helpers' / 'episodes.py'}:Countdown"
GROUP_SIZE, NUM_TURNS = 4, 3
KINDS = {"raise": "env_raised", "hang": "env_hung", "exit": "env_died"}


def plan(num_groups: int) -> list[str | None]:
    """What goes wrong in a group's episodes, with the step: 5 % of steps raise, 2 % hang, 1 % kill."""
    rng = np.random.default_rng(0)
    generated = rng.choice(
        [None, "raise", "hang", "exit"], (num_groups, NUM_TURNS), p=[0.92, 0.05, 0.02, 0.01]
    )
    return [
        next((f"{what}:{step}" for step, what in enumerate(steps, start=1) if what), None)
        for steps in generated
    ]


def children() -> set[int]:
    """Processes whose parent this one is."""
    found = set()
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if fields[1] == str(os.getpid()) and fields[0] != "Z":
            found.add(int(path.parent.name))
    return found


@pytest.mark.timeout(600)
@pytest.mark.parametrize("num_groups", [30, pytest.param(250, marks=pytest.mark.slow)])
def test_a_step_with_failing_episodes_completes(num_groups: int) -> None:
    faults = plan(num_groups)
    samples = []
    for index, fault in enumerate(faults):
        what, _, step = (fault or "").partition(":")
        task: dict[str, Any] = {"start": NUM_TURNS, "fails": {step: what} if fault else {}}
        message = {"role": "user", "content": [{"type": "text", "text": str(NUM_TURNS)}]}
        prompt = text_prompt([ord(c) for c in f"[user]{NUM_TURNS}[assistant]"])
        samples.append(Sample(str(index), (message,), (), prompt, env=EnvTask(COUNTDOWN, {}, task, index)))
    config = make_config(
        rollout={"prompts_per_step": num_groups, "group_size": GROUP_SIZE, "max_tokens": 4},
        env={"isolation": "process", "num_processes": 8, "step_timeout_s": 1.0, "attempts": 1},
        episodes={"lockstep": False},
    )

    async def step() -> RolloutResult:
        policy = ScriptedPolicy(lambda session, sampling: [ord("-")])
        context = make_context(policy, TextProcessor(), config)
        with context.host:
            return await rollout_groups(samples, context, seed_path=(0, 0))

    async def score(trajectories: list[Trajectory], step: int, groups: list[int]) -> list[Score]:
        return [Score(t.episode_return, {}) for t in trajectories]

    processes, files = children(), open_files()
    generated = asyncio.run(step())
    assert children() <= processes  # what other tests had open may be closed meanwhile
    assert left_open(files) == {}

    expected = Counter(KINDS[fault.partition(":")[0]] for fault in faults if fault)
    num_failed = GROUP_SIZE * sum(expected.values())
    assert set(expected) == set(KINDS.values())
    assert generated.counts == Counter(
        {kind: GROUP_SIZE * n for kind, n in expected.items()} | {"failed_episodes": num_failed}
    )
    assert [group.trajectories[0].failed for group in generated.groups] == [bool(fault) for fault in faults]
    assert asyncio.run(score_groups(generated.groups, score)) == []  # type: ignore[arg-type]
    assign_credit(generated.groups, config.algorithm)
    for group, fault in zip(generated.groups, faults, strict=True):
        assert group.failed == bool(fault)
        assert [t.score.total if t.score else None for t in group.trajectories] == [
            None if fault else 1.0
        ] * GROUP_SIZE
