"""Weights & Biases."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from vlrl.tracking.sinks.rollout_rows import COLUMNS, RolloutRow
from vlrl.tracking.sinks.sink import SinkRun, require_package

MAX_IMAGES = 8
"""Of a row, each in a column: W&B shows no list of images in a cell."""


class WandbSink:
    """Numbers by step, and a table of rollouts with their images."""

    name = "W&B"

    def __init__(self, run: SinkRun, project: str) -> None:
        self._wandb = require_package("wandb", option=f"logging.wandb_project={project}", extra="wandb")
        self._run, self._project = run, project

    def open(self) -> None:
        """Begin the run there, or go on with it."""
        name = self._run.kept_id("wandb") or uuid.uuid4().hex[:12]
        self._run.keep_id("wandb", name)
        self._there: Any = self._wandb.init(
            project=self._project,
            name=self._run.run_dir.name,
            dir=str(self._run.run_dir),
            id=name,
            resume="allow",
        )

    def log(self, step: int, numbers: Mapping[str, float]) -> None:
        """Log a step."""
        self._there.log(dict(numbers), step=step)

    def log_rollouts(self, step: int, rows: Sequence[RolloutRow]) -> None:
        """Log the table with the latest step: W&B takes nothing for an earlier one."""
        width = min(MAX_IMAGES, max(len(row.images) for row in rows))
        table = self._wandb.Table(columns=[*COLUMNS, *(f"image_{number}" for number in range(width))])
        for row in rows:
            images = [self._wandb.Image(str(path)) for path in row.images[:width]]
            table.add_data(*row.cells(), *images, *[None] * (width - len(images)))
        self._there.log({"rollouts": table}, commit=False)

    def close(self) -> None:
        """Have all uploaded."""
        self._there.finish()
