"""RUN/rollouts/train/STEP.parquet: every rollout of training, a file a step, written beside the training."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from vlrl.config.options import RolloutLogConfig
from vlrl.tracking.rollouts.paths import train_file, train_files
from vlrl.tracking.rollouts.retention import Retention

TellFn = Callable[[str, str], None]


class RolloutLog:
    """Writes a step's file in the background, while the next step is generated.

    A file is whole or not there, a run that resumes removes those of the steps to come, and `flush` comes
    before a checkpoint: so no rollout is there twice and none is missing, wherever a run is killed. A failure
    is told once and never stops the run; then nothing more is kept.
    """

    def __init__(self, run_dir: Path, options: RolloutLogConfig, *, first_step: int, tell: TellFn) -> None:
        """Remove the files of the steps to come.

        Args:
            run_dir: the run's folder.
            options: what is kept.
            first_step: of those to come.
            tell: called with an event's name and a sentence.
        """
        self._run_dir, self._options, self._tell = run_dir, options, tell
        for step, file in train_files(run_dir).items():
            if step >= first_step:
                file.unlink()
        self._retention = Retention(run_dir, options)
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="rollouts")
        self._writing: Future[None] | None = None
        self._has_failed = False

    def wants(self, step: int) -> bool:
        """Whether a step's rollouts are kept."""
        return not self._has_failed and self._options.every > 0 and step % self._options.every == 0

    def write(self, step: int, make: Callable[[], Sequence[pa.Table]]) -> None:
        """Have a step's file written, once that of the step before is.

        Args:
            step: its number.
            make: makes its tables; called in another thread.
        """
        self.flush()
        self._writing = self._pool.submit(self._write, step, make)

    def flush(self) -> None:
        """Wait for what is being written."""
        if self._writing is not None:
            self._writing.result()
            self._writing = None

    def close(self) -> None:
        """The same; safe to call twice."""
        self._pool.shutdown(wait=True)

    def _write(self, step: int, make: Callable[[], Sequence[pa.Table]]) -> None:
        try:
            table = pa.concat_tables(make())
            # Rollout workers have groups each: the file has them in the order in which they are trained.
            table = table.take(np.argsort(table.column("group").to_numpy(), kind="stable"))
            file = train_file(self._run_dir, step)
            file.parent.mkdir(parents=True, exist_ok=True)
            aside = file.with_suffix(".part")
            pq.write_table(table, aside, compression="zstd")
            os.replace(aside, file)
            self._retention.apply(table, file)
        except Exception as error:  # of any kind: what strangers' data do to the file must not end the run
            self._has_failed = True
            self._tell("rollouts", f"the rollouts of step {step + 1} and later are not kept: {error}")
