"""What a step costs over HTTP, against the same environment called here.

    python benchmarks/env_serve.py --json

The environment shows a 640×480 screenshot that was drawn beforehand: a desktop's windows (which PNG makes
small) or noise (which it cannot). `vlrl env serve` runs in a process of its own on this machine. The floor is
the same call of the environment in this process, and the bare request (GET /health) over the same connection.
Given are milliseconds a step, the median of all steps.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import httpx2
import numpy as np

from vlrl.environment.open import open_env
from vlrl.process.json_stdout import parse_with_json, print_figures
from vlrl.protocols import Observation, StepResult

SIZE = (480, 640)
STILL = f"{Path(__file__).resolve()}:Still"
CLI = [sys.executable, "-c", "from vlrl.cli.main import main; main()"]


class Still:
    """Answers at once with the same screenshot."""

    def __init__(self, noise: bool = False) -> None:
        rng = np.random.default_rng(0)
        pixels = np.full((*SIZE, 3), 200, np.uint8)
        for _ in range(40):  # windows, buttons, lines of text
            y, x = rng.integers(0, SIZE[0] - 40), rng.integers(0, SIZE[1] - 120)
            pixels[y : y + rng.integers(4, 40), x : x + rng.integers(20, 120)] = rng.integers(0, 256, 3)
        if noise:
            pixels = rng.integers(0, 256, (*SIZE, 3), np.uint8)
        self.observation = Observation("Go on.", [pixels])

    def reset(self, task: Mapping[str, Any], seed: int) -> Observation:
        return self.observation

    def step(self, action: str) -> StepResult:
        return StepResult(self.observation, 0.0, False, False, {"success": False})

    def close(self) -> None:
        pass


def median_ms(call: Callable[[], Any], num_steps: int) -> float:
    times = []
    for _ in range(num_steps):
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return round(statistics.median(times) * 1e3, 3)


def measure(num_steps: int) -> dict[str, Any]:
    os.environ["VLRL_ENV_TOKEN"] = secrets.token_hex(8)
    found: dict[str, Any] = {"size": [SIZE[1], SIZE[0]], "num_steps": num_steps}
    for noise in (False, True):
        command = [*CLI, "env", "serve", STILL, f"noise={str(noise).lower()}", "--json"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as server:
            assert server.stdout is not None
            try:
                url = json.loads(server.stdout.readline())["url"]
                found["noise" if noise else "desktop"] = of_one(url, noise, num_steps)
            finally:
                server.terminate()
    return found | {"cores": len(os.sched_getaffinity(0)), "load": round(os.getloadavg()[0], 2)}


def of_one(url: str, noise: bool, num_steps: int) -> dict[str, float]:
    here = open_env(STILL, {"noise": noise})
    here.reset({}, 0)
    row = {"local_ms": median_ms(lambda: here.step("a"), num_steps)}
    with httpx2.Client(base_url=url, trust_env=False) as client:
        row["bare_request_ms"] = median_ms(lambda: client.get("/health").read(), num_steps)
    for images in ("raw", "png"):
        there = open_env("remote", {"url": url, "images": images})
        there.reset({}, 0)
        there.step("a")
        row[f"{images}_ms"] = median_ms(lambda there=there: there.step("a"), num_steps)
        row[f"{images}_overhead_ms"] = round(row[f"{images}_ms"] - row["local_ms"], 3)
        there.close()
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--num-steps", type=int, default=300)
    arguments = parse_with_json(parser)
    found = measure(arguments.num_steps)
    print_figures(found, arguments.json)


if __name__ == "__main__":
    main()
