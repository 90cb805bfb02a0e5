"""MLflow: a tracking server, or a local store."""

from __future__ import annotations

import math
import os
import re
import time
from collections.abc import Mapping, Sequence
from typing import Any

from vlrl.tracking.sinks.rollout_rows import COLUMNS, RolloutRow
from vlrl.tracking.sinks.sink import SinkRun, require_package

NOT_ALLOWED = re.compile(r"[^\w\-. /:]")
"""Characters that MLflow takes in no metric's name."""
MAX_METRICS = 1000
"""Numbers of a request, by MLflow's rule."""


class MlflowSink:
    """Numbers by step, and a table of rollouts with their images."""

    name = "MLflow"

    def __init__(self, run: SinkRun, uri: str, experiment: str) -> None:
        self._mlflow = require_package("mlflow", option=f"logging.mlflow_uri={uri}", extra="mlflow")
        self._run, self._uri, self._experiment = run, uri, experiment
        # Both would stand in the console's lines; the first goes to stdout, where --json writes.
        os.environ.setdefault("MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT", "true")
        os.environ.setdefault("MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR", "false")

    def open(self) -> None:
        """Begin the run there, or go on with it."""
        self._client: Any = self._mlflow.MlflowClient(tracking_uri=self._uri)
        self._id = self._run.kept_id("mlflow") or self._begin()
        self._client.update_run(self._id, status="RUNNING")

    def _begin(self) -> str:
        found = self._client.get_experiment_by_name(self._experiment)
        experiment = (
            found.experiment_id if found is not None else self._client.create_experiment(self._experiment)
        )
        begun = self._client.create_run(experiment, run_name=self._run.run_dir.name)
        self._run.keep_id("mlflow", begun.info.run_id)
        return str(begun.info.run_id)

    def log(self, step: int, numbers: Mapping[str, float]) -> None:
        """Log a step, without what is not finite: not every store of MLflow takes that."""
        now_ms = int(time.time() * 1000)
        metrics = [
            self._mlflow.entities.Metric(NOT_ALLOWED.sub("_", name), value, now_ms, step)
            for name, value in numbers.items()
            if math.isfinite(value)
        ]
        for start in range(0, len(metrics), MAX_METRICS):
            self._client.log_batch(self._id, metrics=metrics[start : start + MAX_METRICS])

    def log_rollouts(self, step: int, rows: Sequence[RolloutRow]) -> None:
        """Add the rows to the table of the run."""
        data: dict[str, list[Any]] = {name: [row.values[name] for row in rows] for name in COLUMNS}
        data["image"] = [self._mlflow.Image(str(row.images[0])) if row.images else None for row in rows]
        self._client.log_table(self._id, data, "rollouts.json")

    def close(self) -> None:
        """Note that the run has ended."""
        self._client.set_terminated(self._id)
