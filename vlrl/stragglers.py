"""What is done about the slowest episodes of a step, besides waiting for them."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence

from vlrl.types import Trajectory

Episode = asyncio.Task[list[Trajectory]]


def has_failed(episode: Sequence[Trajectory]) -> bool:
    """Whether any agent's trajectory has."""
    return any(trajectory.failed for trajectory in episode)


async def first_done(episodes: Sequence[Episode], num_wanted: int) -> None:
    """Wait until so many episodes of a group have ended well, then cancel the others."""
    running = set(episodes)
    num_good = 0
    while running and num_good < num_wanted:
        done, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
        num_good += sum(not has_failed(episode.result()) for episode in done)
    for episode in running:
        episode.cancel()


async def cut_off(episodes: Sequence[Episode], *, share: float, grace_s: float) -> None:
    """Wait until that share of a step's episodes has ended, then so many seconds more; cancel the others."""
    running, num_awaited = set(episodes), math.ceil(share * len(episodes))
    while running and len(episodes) - len(running) < num_awaited:
        _, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
    if running:
        _, running = await asyncio.wait(running, timeout=grace_s)
    for episode in running:
        episode.cancel()
