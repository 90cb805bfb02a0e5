"""trackio, Hugging Face's local tracker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from vlrl.tracking.sinks.rollout_rows import COLUMNS, RolloutRow
from vlrl.tracking.sinks.sink import SinkRun, require_package


class TrackioSink:
    """Numbers by step, and a table of rollouts with their images."""

    name = "trackio"

    def __init__(self, run: SinkRun, project: str) -> None:
        option = f"logging.trackio_project={project}"
        self._trackio = require_package("trackio", option=option, extra="trackio")
        self._run, self._project = run, project
        for module in ("trackio", "trackio.run", "trackio.utils"):
            # What it prints would stand in the console's lines, and in what --json writes to stdout.
            require_package(module, option=option, extra="trackio").print = lambda *words, **options: None

    def open(self) -> None:
        """Begin the run there, or go on with it; nodes' numbers are vlrl's, so trackio reads none."""
        self._there: Any = self._trackio.init(
            project=self._project,
            name=self._run.run_dir.name,
            resume="allow" if self._run.first_step else "never",
            embed=False,
            auto_log_gpu=False,
            auto_log_cpu=False,
        )

    def log(self, step: int, numbers: Mapping[str, float]) -> None:
        """Log a step."""
        self._there.log(dict(numbers), step=step)

    def log_rollouts(self, step: int, rows: Sequence[RolloutRow]) -> None:
        """Log the table."""
        import pandas as pd

        images = [[self._trackio.Image(str(path)) for path in row.images] for row in rows]
        frame = pd.DataFrame([row.cells() for row in rows], columns=list(COLUMNS))
        frame["images"] = pd.Series(images, dtype=object)
        self._there.log({"rollouts": self._trackio.Table(dataframe=frame)}, step=step)

    def close(self) -> None:
        """Have all written."""
        self._there.finish()
