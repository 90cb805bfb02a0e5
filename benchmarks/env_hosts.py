"""What a step costs over calling the environment, where it runs: event loop, thread, process.

    python benchmarks/env_hosts.py --json

The environment shows an image that it drew beforehand, as a numpy array or a PIL image, so what is measured
is the host's: checks, the copy of the image, and the way there and back. Given are microseconds a step
(median of the rounds) for one episode by itself and for 16 at once, and milliseconds until an episode's first
observation is there: again, and (for processes) with a warm one.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
from PIL import Image

from vlrl.config.rollout import EnvConfig
from vlrl.environment.host.host import EnvHost
from vlrl.process.json_stdout import parse_with_json, print_figures
from vlrl.protocols import Observation, StepResult
from vlrl.types import EnvTask

ISOLATIONS: tuple[Literal["inline", "thread", "process"], ...] = ("inline", "thread", "process")
SIZES = {"no image": None, "224x224": (224, 224), "1280x800": (800, 1280)}


class Still:
    """Answers at once with the same image."""

    def __init__(self, size: tuple[int, int] | None = None, pil: bool = False) -> None:
        pixels = np.random.default_rng(0).integers(0, 256, (*(size or (1, 1)), 3), np.uint8)
        image = Image.fromarray(pixels) if pil else pixels
        self.observation = Observation("Go on.", [image] if size else [])

    def reset(self, task: Mapping[str, Any], seed: int) -> Observation:
        return self.observation

    def step(self, action: str) -> StepResult:
        return StepResult(self.observation, 0.0, False, False, {"success": False})

    def close(self) -> None:
        pass


def task(size: tuple[int, int] | None, pil: bool) -> EnvTask:
    return EnvTask(f"{Path(__file__).resolve()}:Still", {"size": size, "pil": pil})


async def first_observation_ms(host: EnvHost, which: EnvTask) -> float:
    begin = time.perf_counter()
    env = await host.open(which)
    await env.reset()
    seconds = time.perf_counter() - begin
    await env.close()
    return round(seconds * 1e3, 2)


async def step_us(host: EnvHost, which: EnvTask, *, at_once: int, num_steps: int, rounds: int) -> float:
    """Microseconds per step of all episodes together: with 16 at once, the time of 16 steps divided by 16."""
    envs = await asyncio.gather(*(host.open(which) for _ in range(at_once)))
    times = []

    async def episode(index: int) -> None:
        for _ in range(num_steps):
            await envs[index].step("a")

    for _ in range(rounds):
        begin = time.perf_counter()
        await asyncio.gather(*map(episode, range(at_once)))
        times.append((time.perf_counter() - begin) / num_steps / at_once)
    for env in envs:
        await env.close()
    return round(statistics.median(times) * 1e6, 1)


def measure(num_steps: int, rounds: int, many: int) -> dict[str, Any]:
    found: dict[str, Any] = {"cores": len(os.sched_getaffinity(0)), "load": round(os.getloadavg()[0], 2)}
    for isolation in ISOLATIONS:
        for label, size in SIZES.items():
            for pil in (False, True) if size else (False,):
                which = task(size, pil)
                row: dict[str, float] = {}
                with (
                    EnvHost(EnvConfig(isolation=isolation), max_open=many) as host,
                    asyncio.Runner() as loop,
                ):
                    row["first_ms"] = loop.run(first_observation_ms(host, which))
                    row["next_ms"] = loop.run(first_observation_ms(host, which))
                    for at_once in (1, many):
                        steps = max(num_steps // at_once, 10)
                        us = loop.run(step_us(host, which, at_once=at_once, num_steps=steps, rounds=rounds))
                        row[f"step_us_{at_once}_at_once"] = us
                found[f"{isolation}, {label}{', PIL' if pil else ''}"] = row
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--num-steps", type=int, default=400)
    parser.add_argument("--at-once", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parse_with_json(parser)
    found = measure(arguments.num_steps, arguments.rounds, arguments.at_once)
    print_figures(found, arguments.json)


if __name__ == "__main__":
    main()
