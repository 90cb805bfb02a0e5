"""Whole runs within a test's process: stopped after a step as a user stops them, and their numbers."""

from __future__ import annotations

import io
import json
import os
import signal
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rich.console import Console

from vlrl import grpo
from vlrl.config import Config
from vlrl.tracking.console import TrainConsole
from vlrl.tracking.metrics import repeatable
from vlrl.tracking.rollouts.paths import train_files
from vlrl.tracking.rollouts.read import read_rollouts


class StoppingConsole(TrainConsole):
    """A console that sends SIGTERM to its own process once a step is shown."""

    stop_after: int | None = None

    def step(self, step: int, values: Mapping[str, float]) -> None:
        """Show, and stop if it is time."""
        super().step(step, values)
        if step == self.stop_after:
            os.kill(os.getpid(), signal.SIGTERM)


def run(
    config: Config,
    train: Callable[..., dict[str, Any]] = grpo.train,
    *,
    stop_after: int | None = None,
    resume: bool = False,
) -> dict[str, Any]:
    """Train without output; returns the summary.

    Args:
        config: of the run.
        train: the page, such as `vlrl.grpo.train`.
        stop_after: step after which SIGTERM comes; the page then raises Interrupted.
        resume: go on with the run in its folder.
    """
    with StoppingConsole("test", config.num_steps, console=Console(file=io.StringIO())) as console:
        console.stop_after = stop_after
        return train(config, console, resume=resume)


def rollouts(run_dir: Path) -> list[dict[str, Any]]:
    """Every rollout of training that was kept, but how long it took."""
    files = train_files(run_dir).values()
    return [record | {"duration_s": 0.0} for file in files for record in read_rollouts(file)]


def metrics(config: Config) -> list[dict[str, Any]]:
    """Every step's numbers but those that a clock made."""
    lines = (config.run_dir / "metrics.jsonl").read_text().splitlines()
    return [repeatable(json.loads(line)) for line in lines]
