"""RUN/prometheus_targets.json: where Prometheus finds the processes of a run, by its file discovery."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

TARGETS_FILE = "prometheus_targets.json"
"""A list of {"targets": ["host:port"], "labels": {run, role, number}}; gone once the run has ended itself.

Of a run that was killed it stays: Prometheus then finds nobody there, which is an alert.
"""


class TargetsFile:
    """Keeps the file up to date, and its copy in a folder of several runs' files."""

    def __init__(self, run_dir: Path, shared: Path | None = None) -> None:
        """Write nothing yet; `shared` is that folder, which is made if missing."""
        self._paths, self._run = [run_dir / TARGETS_FILE], run_dir.name
        if shared is not None:  # in file discovery a path has wildcards in its last part only
            self._paths.append(shared / f"{run_dir.name}.json")
        self._written = ""

    def write(self, targets: Iterable[tuple[str, str, int]]) -> None:
        """Write the targets (address, role, number) if they have changed; the file is whole at any time."""
        text = json.dumps([self._entry(*target) for target in targets], indent=1) + "\n"
        if text == self._written:
            return
        for path in self._paths:
            path.parent.mkdir(parents=True, exist_ok=True)
            aside = path.with_name(path.name + ".part")
            aside.write_text(text, encoding="utf-8")
            os.replace(aside, path)
        self._written = text

    def remove(self) -> None:
        """Remove the file: the run has ended."""
        for path in self._paths:
            path.unlink(missing_ok=True)

    def _entry(self, address: str, role: str, number: int) -> Mapping[str, object]:
        return {"targets": [address], "labels": {"run": self._run, "role": role, "number": str(number)}}
