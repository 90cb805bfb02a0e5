"""The sinks of a run as one."""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

from vlrl.config.options import LoggingConfig
from vlrl.tracking.rollouts.paths import train_files
from vlrl.tracking.sinks.background import BackgroundSink, TellFn
from vlrl.tracking.sinks.metrics_file import MetricsFile
from vlrl.tracking.sinks.mlflow import MlflowSink
from vlrl.tracking.sinks.rollout_rows import read_rows
from vlrl.tracking.sinks.sink import Sink, SinkRun
from vlrl.tracking.sinks.tensorboard import TensorBoardSink
from vlrl.tracking.sinks.trackio import TrackioSink
from vlrl.tracking.sinks.wandb import WandbSink

CLOSE_S = 20.0
"""Seconds in which all sinks end: an upload that is under way has this long."""


class MetricSinks:
    """Writes every step's numbers to all sinks of a run.

    metrics.jsonl is written at once; a sink that fails there is the run's failure. The others have a thread
    and a bounded queue each (`vlrl.tracking.sinks.background`), so that none can stop the run or slow it.

    A run that resumes at step k drops from metrics.jsonl the lines with step ≥ k. W&B, trackio and MLflow
    cannot forget: W&B keeps the first values of repeated steps, the others show both.
    """

    def __init__(
        self,
        run_dir: Path,
        config: LoggingConfig,
        *,
        resume_step: int | None = None,
        tell: TellFn = lambda event, text: None,
        more: tuple[Sink, ...] = (),
    ) -> None:
        """Open the sinks.

        Args:
            run_dir: the run's folder; made if missing.
            config: which sinks.
            resume_step: first step that will be logged; None starts the files again.
            tell: called, from any thread, with an event's name and a sentence.
            more: sinks besides the config's.

        Raises:
            ConfigError: if the package of a sink is not installed; then nothing has been touched.
        """
        run = SinkRun(run_dir, resume_step or 0)
        sinks = [*_sinks(run, config), *more]
        self._file = MetricsFile(run_dir, run.first_step)
        self._run_dir, self._table_rollouts = run_dir, config.table_rollouts
        self._next_rollouts = run.first_step
        self._others = [BackgroundSink(sink, _safe(tell)) for sink in sinks]
        self._is_closed = False

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Record the numbers of a step; may be called more than once for a step."""
        numbers = {name: float(value) for name, value in values.items() if name != "step"}
        self._file.log(step, numbers)
        self._log_rollouts()  # of the step before, while that is the latest one for W&B
        for sink in self._others:
            sink.put(partial(_log, step, numbers))

    def close(self) -> None:
        """Close everything, some seconds later at the latest; safe to call twice."""
        if self._is_closed:
            return
        self._is_closed = True
        self._log_rollouts()
        self._file.close()
        for sink in self._others:
            sink.end()
        until = time.monotonic() + CLOSE_S
        for sink in self._others:
            sink.join(until)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _log_rollouts(self) -> None:
        """Hand on the files of rollouts that were written since; a step's is while the next one runs."""
        if not self._others or not self._table_rollouts:
            return
        for step, file in train_files(self._run_dir).items():
            if step >= self._next_rollouts:
                self._next_rollouts = step + 1
                for sink in self._others:
                    sink.put(partial(_log_rollouts, step, file, self._run_dir, self._table_rollouts))


def _sinks(run: SinkRun, config: LoggingConfig) -> list[Sink]:
    sinks: list[Sink] = []
    if config.wandb_project is not None:
        sinks.append(WandbSink(run, config.wandb_project))
    if config.trackio_project is not None:
        sinks.append(TrackioSink(run, config.trackio_project))
    if config.mlflow_uri is not None:
        sinks.append(MlflowSink(run, config.mlflow_uri, config.mlflow_experiment))
    if config.tensorboard:
        sinks.append(TensorBoardSink(run))
    return sinks


def _log(step: int, numbers: Mapping[str, float], sink: Sink) -> None:
    sink.log(step, numbers)


def _log_rollouts(step: int, file: Path, run_dir: Path, most: int, sink: Sink) -> None:
    if rows := read_rows(file, run_dir, most):
        sink.log_rollouts(step, rows)


def _safe(tell: TellFn) -> TellFn:
    """`tell` that does not raise: a full disk has no room for the event that it is full."""

    def told(event: str, text: str) -> None:
        try:
            tell(event, text)
        except OSError:
            return

    return told
