"""Snapshots through the host: plain bytes to the driver, whatever they are where the environment lives."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, Literal

import pytest

from vlrl.config.rollout import EnvConfig
from vlrl.environment.host.failure import EnvFailure
from vlrl.environment.host.host import EnvHost
from vlrl.types import EnvTask

Isolation = Literal["inline", "thread", "process"]
ISOLATIONS: tuple[Isolation, ...] = ("inline", "thread", "process")
FILE = Path(__file__).parents[2] / "helpers" / "episodes.py"


def host(isolation: Isolation) -> EnvHost:
    return EnvHost(EnvConfig(isolation=isolation, memory_gib=1.0), max_open=2)


def countdown(env: str = "Countdown", **options: Any) -> EnvTask:
    return EnvTask(f"{FILE}:{env}", options, {"start": 4}, 7)


@pytest.mark.parametrize("env", ["Countdown", "SlowCountdown"])
@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_a_snapshot_goes_on_in_any_environment_of_the_same_spec(isolation: Isolation, env: str) -> None:
    """Its state is of a class of the plug-in's own file."""

    async def branches() -> list[str]:
        first, second = await on.open(countdown(env)), await on.open(countdown(env))
        await first.reset()
        await first.step("-")
        state = await first.snapshot()
        assert isinstance(state, bytes)
        texts = [(await first.step(action)).observation.text for action in "--"]
        await second.reset()
        for one in (second, second, first):
            await one.restore(state)
            texts += [(await one.step(action)).observation.text for action in "?-"]
        await first.close()
        await second.close()
        return texts

    with host(isolation) as on:
        assert asyncio.run(branches()) == ["2", "1"] + ["3", "2"] * 3


@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_who_has_none_says_so_and_one_that_cannot_be_sent_fails(isolation: Isolation) -> None:
    async def snapshots(spec: EnvTask) -> bool:
        env = await on.open(spec)
        try:
            await env.reset()
            if env.snapshots:
                await env.snapshot()
            return env.snapshots
        finally:
            await env.close()

    with host(isolation) as on:
        assert asyncio.run(snapshots(countdown("Plain"))) is False
        said = r"Countdown', seed 7, in snapshot: its snapshot, a State, cannot be pickled: "
        with pytest.raises(EnvFailure, match=said):
            asyncio.run(snapshots(countdown(secret=True)))
