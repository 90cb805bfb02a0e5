"""A run that is viewed: its files, read when they are asked for and again when they have changed."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from vlrl.errors import DataError
from vlrl.tracking.rollouts.paths import train_files
from vlrl.tracking.rollouts.read import record_of
from vlrl.tracking.sinks import METRICS_FILE, read_metrics
from vlrl.viewer.browse.curves import curves
from vlrl.viewer.browse.health import as_json, findings
from vlrl.viewer.browse.light import joined, light_columns, search_columns
from vlrl.viewer.browse.spans import last_steps
from vlrl.viewer.browse.whole import whole_rollout

MAX_TABLES = 3
"""Steps whose rows are kept whole in memory, those read last."""

Version = str


class OpenRun:
    """A run's folder. What it answers with is JSON, and is computed again only when its files have changed.

    Attributes:
        run_dir: the folder.
        key: its name in addresses, unique among the runs that are viewed.
    """

    def __init__(self, run_dir: Path, key: str) -> None:
        self.run_dir, self.key = run_dir, key
        self._kept: dict[Any, tuple[Version, Any]] = {}
        self._tables: dict[Path, tuple[Version, pa.Table]] = {}
        self._lock = threading.Lock()

    @property
    def config(self) -> Mapping[str, Any]:
        """config.yaml; empty if it is missing or cannot be read."""
        found: Mapping[str, Any] = self._fresh("config", self.run_dir / "config.yaml", _read_config)
        return found

    def option(self, path: str) -> Any:
        """An option of the config by its dotted key; None if it is not there."""
        node: Any = self.config
        for key in path.split("."):
            node = node.get(key) if isinstance(node, dict) else None
        return node

    @property
    def summary(self) -> Mapping[str, Any]:
        """summary.json, which is written when a run ends; empty until then."""
        try:
            found = json.loads((self.run_dir / "summary.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}

    def steps(self) -> list[tuple[int, int, Version]]:
        """(step, rollouts, version of the file) of every step whose rollouts are kept."""
        out = []
        for step, file in train_files(self.run_dir).items():
            try:
                out.append((step, self._fresh(("rows", step), file, _num_rows), _version(file)))
            except (OSError, pa.ArrowException):  # removed meanwhile, or damaged
                continue
        return out

    def metrics_version(self) -> Version:
        """Changes when a step is logged."""
        return _version(self.run_dir / METRICS_FILE)

    def metrics(self) -> list[dict[str, float | None]]:
        """metrics.jsonl, a dict a step."""
        found: list[dict[str, float | None]] = self._fresh(
            "metrics", self.run_dir / METRICS_FILE, read_metrics
        )
        return found

    def curves(self) -> dict[str, Any]:
        """What `vlrl.viewer.browse.curves.curves` makes of its metrics."""
        prompts, size = self.option("rollout.prompts_per_step"), self.option("rollout.group_size")
        known = isinstance(prompts, int) and isinstance(size, int)
        return curves(self.metrics(), prompts * size if known else None)

    def health(self) -> dict[str, Any]:
        """What is unusual, see `vlrl.viewer.browse.health`, and the failures of each source."""
        failures = self.failures()
        return {
            "findings": as_json(findings(self.metrics(), failures)),
            "failures": {
                source: [[step, *counts] for step, counts in by_step.items()]
                for source, by_step in failures.items()
            },
        }

    def failures(self) -> dict[str, dict[int, tuple[int, int]]]:
        """Source → {step: (rollouts that failed, all)}."""
        found: dict[str, dict[int, tuple[int, int]]] = {}
        for step, _, _ in self.steps():
            try:
                light = self.light(step)
            except (OSError, pa.ArrowException, DataError):
                continue
            for source, outcome in zip(light["source"], light["outcome"], strict=True):
                by_step = found.setdefault(source or "all", {})
                failed, count = by_step.get(step, (0, 0))
                by_step[step] = (failed + (outcome not in ("ok", "truncated")), count + 1)
        return found

    def light(self, step: int) -> dict[str, Any]:
        """The index of a step, see `vlrl.viewer.browse.light`."""
        found: dict[str, Any] = self._fresh(
            ("light", step), self._file(step), lambda file: light_columns(file, step)
        )
        return found

    def index(self, first: int, last: int) -> dict[str, Any]:
        """The indexes of all steps from first to last; a step whose file is damaged is left out."""
        blocks = []
        for step, _, _ in self.steps():
            if first <= step <= last:
                with contextlib.suppress(OSError, pa.ArrowException, DataError):
                    blocks.append(self.light(step))
        return joined(blocks)

    def texts(self, first: int, last: int) -> dict[str, Any]:
        """What a search reads: {step: a text a rollout}."""
        steps = [step for step, _, _ in self.steps() if first <= step <= last]
        return {str(step): self._fresh(("texts", step), self._file(step), search_columns) for step in steps}

    def rollout(self, step: int, row: int) -> dict[str, Any]:
        """A rollout whole, see `vlrl.viewer.browse.whole`.

        Raises:
            DataError: if it is not kept.
        """
        table = self._table(step)
        if not 0 <= row < len(table):
            raise DataError(f"step {step} has {len(table)} rollouts, and no row {row}")
        return {**whole_rollout(record_of(table.slice(row, 1).to_pylist()[0]), self.run_dir), "row": row}

    def timeline(self) -> dict[str, Any]:
        """The spans of the last steps, see `vlrl.viewer.browse.spans`."""
        found: dict[str, Any] = self._fresh("timeline", self.run_dir / "timeline.jsonl", last_steps)
        return found

    def _file(self, step: int) -> Path:
        file = train_files(self.run_dir).get(step)
        if file is None:
            raise DataError(f"the rollouts of step {step} are not kept")
        return file

    def _table(self, step: int) -> pa.Table:
        file = self._file(step)
        version = _version(file)
        with self._lock:
            known = self._tables.pop(file, None)
            table = known[1] if known and known[0] == version else pq.read_table(file)
            self._tables[file] = version, table
            while len(self._tables) > MAX_TABLES:
                del self._tables[next(iter(self._tables))]
        return table

    def _fresh(self, name: Any, file: Path, read: Callable[[Path], Any]) -> Any:
        """What a file comes to, read again if it has changed."""
        version = _version(file)
        known = self._kept.get(name)
        if known is None or known[0] != version:
            known = self._kept[name] = version, read(file)
        return known[1]


def _version(file: Path) -> Version:
    try:
        stat = file.stat()
    except OSError:
        return ""
    return f"{stat.st_mtime_ns:x}-{stat.st_size:x}"


def _read_config(file: Path) -> dict[str, Any]:
    try:
        found = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError):
        return {}
    return found if isinstance(found, dict) else {}


def _num_rows(file: Path) -> int:
    return int(pq.read_metadata(file).num_rows)
