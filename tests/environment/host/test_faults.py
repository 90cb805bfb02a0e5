"""Hundreds of episodes, many of which fail: each is counted by kind, the others right, nothing is left."""

from __future__ import annotations

import asyncio
from collections import Counter

import numpy as np
import pytest
from hostile_envs import FILE

from vlrl.config.rollout import EnvConfig
from vlrl.environment.host.failure import EnvFailure
from vlrl.environment.host.host import EnvHost
from vlrl.types import EnvTask

NUM_STEPS = 3
SHARES = {"raise": 0.05, "sleep": 0.015, "hold the GIL": 0.005, "exit": 0.005, "segfault": 0.005}
KINDS = {"raise": "raised", "sleep": "hung", "hold the GIL": "hung", "exit": "died", "segfault": "died"}


def planned(seed: int) -> list[str]:
    """What each step of an episode does."""
    rng = np.random.default_rng(seed)
    return [
        str(rng.choice([*SHARES, ""], p=[*SHARES.values(), 1 - sum(SHARES.values())]))
        for _ in range(NUM_STEPS)
    ]


def play_all(num_episodes: int) -> None:
    config = EnvConfig(isolation="process", memory_gib=1.0, reset_timeout_s=20, step_timeout_s=2.0)
    plans = [planned(seed) for seed in range(num_episodes)]

    async def episode(seed: int) -> str:
        task = {"steps": {str(i): what for i, what in enumerate(plans[seed]) if what}}
        env = await on.open(EnvTask(f"{FILE}:Faulty", {}, task, seed))
        try:
            assert (await env.reset()).text == f"seed {seed}"
            rewards = [(await env.step(f"{i}")).reward for i in range(NUM_STEPS)]
            assert rewards == [seed + 1.0 + i for i in range(NUM_STEPS)]
        except EnvFailure as failure:
            return failure.kind
        finally:
            await env.close()
        return "fine"

    async def all_of_them() -> list[str]:
        return await asyncio.gather(*map(episode, range(num_episodes)))

    with EnvHost(config, max_open=6) as on:
        outcomes = asyncio.run(all_of_them())
    expected = [KINDS[next(filter(None, plan))] if any(plan) else "fine" for plan in plans]
    assert Counter(outcomes) == Counter(expected)
    assert outcomes == expected
    assert len(Counter(expected)) == 4


def test_150_episodes_with_an_environment_that_fails_in_every_way() -> None:
    play_all(150)


@pytest.mark.slow
def test_1000_episodes_with_an_environment_that_fails_in_every_way() -> None:
    play_all(1000)
