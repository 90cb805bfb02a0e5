"""A run folder, read."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from vlrl.tracking.rollouts.paths import train_files
from vlrl.tracking.rollouts.read import read_rollouts
from vlrl.tracking.sinks import METRICS_FILE, read_metrics
from vlrl.viewer.charts import Point


@dataclass(frozen=True, slots=True)
class RunFolder:
    """What a run folder holds; anything may be missing.

    Attributes:
        name: of the run.
        summary: summary.json.
        config: config.yaml, parsed; `config_text` is the file itself.
        metrics: one dict per step.
        columns: (heading, records) of the rollouts to show side by side.
    """

    name: str
    summary: Mapping[str, Any]
    config: Mapping[str, Any]
    config_text: str
    metrics: Sequence[Mapping[str, float | None]]
    columns: Sequence[tuple[str, Sequence[Mapping[str, Any]]]]

    def option(self, path: str, default: Any = None) -> Any:
        """An option by its dotted key."""
        node: Any = self.config
        for key in path.split("."):
            node = node.get(key) if isinstance(node, dict) else None
        return default if node is None else node

    def series(self, name: str) -> list[Point]:
        """(step, value) of every step that logged the metric."""
        return [(float(line["step"] or 0), line[name]) for line in self.metrics if name in line]

    def accuracy(self, when: str, how: str) -> float | None:
        """Held-out accuracy "before" or "after", "greedy" or "sampled"."""
        key = f"heldout_accuracy_{when}"
        value = self.summary.get(f"{key}_{how}", self.summary.get(key) if how == "greedy" else None)
        return None if value is None else float(value)

    @property
    def target(self) -> float | None:
        """Greedy held-out accuracy the run was to reach, if it had a target."""
        target = self.summary.get("target_accuracy", self.option("eval.target_accuracy"))
        return None if target is None else float(target)

    @property
    def seconds(self) -> float:
        """Wall time of the run, as far as it is known; phases may contain each other."""
        phases = self.summary.get("seconds_by_phase") or {}
        return float(self.summary.get("seconds_total") or sum(phases.values()))

    @property
    def num_steps(self) -> int:
        """Weight updates made."""
        known = self.summary.get("num_steps")
        # A line of held-out accuracies alone is an evaluation, not a step.
        trained = [n for n in self.metrics if any(k != "step" and not k.startswith("heldout/") for k in n)]
        return len(trained) if known is None else int(known)


def load_run(run_dir: Path) -> RunFolder:
    """Read a run folder; a missing file counts as empty."""
    config_text, summary_text = _read(run_dir / "config.yaml"), _read(run_dir / "summary.json")
    try:
        config = yaml.safe_load(config_text)
    except yaml.YAMLError:
        config = None
    summary = json.loads(summary_text) if summary_text else {}
    columns = [(name, read_rollouts(run_dir / "rollouts" / f"{name}.jsonl")) for name in ("before", "after")]
    columns = [(f"{name} training", records) for name, records in columns if records]
    if not columns and (train := train_files(run_dir)):
        last = max(train)
        columns = [(f"in training, step {last}", read_rollouts(train[last]))]
    return RunFolder(
        name=str(summary.get("run", run_dir.resolve().name)),
        summary=summary,
        config=config if isinstance(config, dict) else {},
        config_text=config_text,
        metrics=read_metrics(run_dir / METRICS_FILE),
        columns=columns,
    )


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.is_file() else ""
