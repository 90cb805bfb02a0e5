"""Where a run's numbers go: metrics.jsonl always, TensorBoard and W&B by option."""

from __future__ import annotations

import json
import math
import os
import uuid
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from vlrl.config.options import LoggingConfig
from vlrl.errors import ConfigError

METRICS_FILE = "metrics.jsonl"
"""One flat JSON object per line, `step` first; a number that is not finite is null."""


class MetricSinks:
    """Writes every step's numbers to all sinks of a run.

    A run that resumes at step k first drops the lines with step ≥ k, so that its file equals that of a
    run which was never stopped. W&B cannot forget: there the repeated steps keep their first values.
    """

    def __init__(self, run_dir: Path, config: LoggingConfig, *, resume_step: int | None = None) -> None:
        """Open the sinks.

        Args:
            run_dir: the run's folder; made if missing.
            config: which sinks.
            resume_step: first step that will be logged; None or 0 starts the files again.

        Raises:
            ConfigError: if W&B is asked for and not installed.
        """
        first_step = resume_step or 0
        run_dir.mkdir(parents=True, exist_ok=True)
        # W&B goes first: if it is missing, nothing has been touched yet.
        self._wandb = _open_wandb(run_dir, config.wandb_project, first_step) if config.wandb_project else None
        self._tensorboard = _open_tensorboard(run_dir, first_step) if config.tensorboard else None
        path = run_dir / METRICS_FILE
        drop_from_step(path, first_step)
        # Line-buffered: what a step logged is with the operating system before the next step begins.
        self._file = path.open("a", encoding="utf-8", buffering=1)

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Record the numbers of a step; may be called more than once for a step."""
        numbers = {name: float(value) for name, value in values.items() if name != "step"}
        line = {"step": step} | {n: v if math.isfinite(v) else None for n, v in numbers.items()}
        self._file.write(json.dumps(line, allow_nan=False) + "\n")
        if self._tensorboard is not None:
            for name, value in numbers.items():
                self._tensorboard.add_scalar(name, value, step)
        if self._wandb is not None:
            self._wandb.log(numbers, step=step)

    def close(self) -> None:
        """Flush and close everything; safe to call twice."""
        self._file.close()
        if self._tensorboard is not None:
            self._tensorboard.close()
        if self._wandb is not None:
            self._wandb.finish()
        self._tensorboard = self._wandb = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def drop_from_step(path: Path, step: int) -> None:
    """Remove the lines of a JSONL file whose `step` is at or past `step`, and any torn line.

    Written aside, then renamed: a kill leaves the old file or the new one. A missing file stays missing.
    """
    if not path.is_file():
        return
    kept = path.with_name(path.name + ".part")
    with path.open(encoding="utf-8") as source, kept.open("w", encoding="utf-8") as target:
        for line in source:
            record = _parse(line)
            if record is not None and record["step"] < step:
                target.write(line)
    os.replace(kept, path)


def read_metrics(path: Path) -> list[dict[str, float | None]]:
    """The steps of a metrics.jsonl in order, one dict per step; torn lines are skipped."""
    steps: dict[int, dict[str, float | None]] = {}
    if path.is_file():
        with path.open(encoding="utf-8") as file:
            for line in file:
                record = _parse(line)
                if record is not None:
                    steps.setdefault(record["step"], {}).update(record)
    return [steps[step] for step in sorted(steps)]


def _parse(line: str) -> dict[str, Any] | None:
    """A whole line with a step, or None: a kill can cut the last line short."""
    if not line.endswith("\n"):
        return None
    try:
        record = json.loads(line)
    except ValueError:
        return None
    return record if isinstance(record, dict) and isinstance(record.get("step"), int) else None


def _open_tensorboard(run_dir: Path, first_step: int) -> Any:
    from torch.utils.tensorboard import SummaryWriter

    # purge_step hides what an interrupted run wrote at or past it.
    return SummaryWriter(str(run_dir / "tensorboard"), purge_step=first_step or None, flush_secs=10)


def _open_wandb(run_dir: Path, project: str, first_step: int) -> Any:
    try:
        import wandb
    except ImportError as error:
        raise ConfigError(
            f"logging.wandb_project={project!r} needs Weights & Biases: pip install vlrl[wandb], "
            "or set logging.wandb_project=null"
        ) from error
    id_file = run_dir / "wandb_id"
    if not (first_step and id_file.is_file()):
        id_file.write_text(uuid.uuid4().hex[:12], encoding="utf-8")
    return wandb.init(
        project=project,
        name=run_dir.name,
        dir=str(run_dir),
        id=id_file.read_text(encoding="utf-8"),
        resume="allow",
    )
