"""RUN/metrics.jsonl: every step's numbers, written before the next step begins."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

METRICS_FILE = "metrics.jsonl"
"""One flat JSON object per line, `step` first; a number that is not finite is null."""


class MetricsFile:
    """Writes the file; the lines of steps that are done again are dropped first.

    So the file of a run that resumes equals that of a run which was never stopped.
    """

    def __init__(self, run_dir: Path, first_step: int) -> None:
        """Drop the lines of `first_step` and later ones, and go on behind those before."""
        run_dir.mkdir(parents=True, exist_ok=True)
        path = run_dir / METRICS_FILE
        drop_from_step(path, first_step)
        # Line-buffered: what a step logged is with the operating system before the next step begins.
        self._file = path.open("a", encoding="utf-8", buffering=1)

    def log(self, step: int, numbers: Mapping[str, float]) -> None:
        """Add a line."""
        line = {"step": step} | {n: v if math.isfinite(v) else None for n, v in numbers.items()}
        self._file.write(json.dumps(line, allow_nan=False) + "\n")

    def close(self) -> None:
        """Close the file; safe to call twice."""
        self._file.close()


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
