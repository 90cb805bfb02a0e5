"""Runs found in a folder, and what is known of each from its files."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import yaml

from vlrl.errors import ConfigError
from vlrl.run.lineage import LINEAGE_FILE, read_lineage
from vlrl.run.lock import require_unlocked
from vlrl.run.resume import CONFIG_FILE
from vlrl.run.summary import SUMMARY_FILE
from vlrl.tracking.sinks import METRICS_FILE, read_metrics

TAGS_FILE = "tags.json"
"""`tags`, a list of words, and `note`, a text: what people say of a run."""
Status = Literal["finished", "running", "stopped"]
ABSENT = "absent"


@dataclass(frozen=True, slots=True)
class RunRecord:
    """A run.

    Attributes:
        folder: of the run.
        name: its folder below the one that was searched.
        status: finished, running, or stopped before its last step.
        num_steps: done.
        planned_steps: of its config.
        seed: of its config.
        started: when it was first started, in UTC; "" if that is not known.
        commit: of vlrl, with + if it was changed since; "" if that is not known.
        parent: folder of the run whose model it began with; "" if there is none.
        metrics: the last value of each metric.
        summary: summary.json.
        tags: words that people gave it.
        note: what people wrote about it.
    """

    folder: Path
    name: str
    status: Status
    num_steps: int
    planned_steps: int | None
    seed: int | None
    started: str
    commit: str
    parent: str
    metrics: Mapping[str, float]
    summary: Mapping[str, Any]
    tags: Sequence[str] = ()
    note: str = ""
    lineage: Sequence[Mapping[str, Any]] = field(default=(), repr=False)

    def value(self, metric: str) -> float | None:
        """The last value of a metric, or a number of the summary."""
        found = self.metrics.get(metric, self.summary.get(metric))
        return float(found) if isinstance(found, int | float) else None


def find_runs(folder: Path) -> list[RunRecord]:
    """All runs in a folder and the folders below it, by the time of their start.

    Raises:
        ConfigError: if there is no such folder.
    """
    if not folder.is_dir():
        raise ConfigError(f"{folder} is not a folder; give the one that runs are in (run.dir)")
    found = [
        read_run(path.parent, folder) for path in sorted(folder.rglob(CONFIG_FILE)) if is_run(path.parent)
    ]
    return sorted(found, key=lambda run: run.started)


def is_run(folder: Path) -> bool:
    """Whether it is a run's folder; a checkpoint has a config, too."""
    return (folder / CONFIG_FILE).is_file() and any(
        (folder / name).is_file() for name in (METRICS_FILE, LINEAGE_FILE)
    )


def read_run(folder: Path, below: Path | None = None) -> RunRecord:
    """What is known of a run.

    Raises:
        ConfigError: if it is not a run's folder.
    """
    if not is_run(folder):
        raise ConfigError(f"{folder} is not a run's folder: it has no {CONFIG_FILE} with {METRICS_FILE}")
    steps, summary = read_metrics(folder / METRICS_FILE), _read_json(folder / SUMMARY_FILE)
    config, lineage, said = read_config(folder), read_lineage(folder), _read_json(folder / TAGS_FILE)
    first = lineage[0] if lineage else {}
    code = first.get("code", {})
    return RunRecord(
        folder=folder,
        name=str(folder.relative_to(below)) if below and folder != below else folder.resolve().name,
        status=_status(folder, bool(summary)),
        num_steps=sum("optim/lr" in step for step in steps),
        planned_steps=config.get("num_steps"),
        seed=config.get("run.seed"),
        started=str(first.get("started", "")),
        commit=str(code.get("commit", ""))[:12] + ("+" if code.get("is_changed") else ""),
        parent=str(first.get("model", {}).get("parent_run", "")),
        metrics={name: v for step in steps for name, v in step.items() if v is not None and name != "step"},
        summary=summary,
        tags=tuple(map(str, said.get("tags", ()))),
        note=str(said.get("note", "")),
        lineage=lineage,
    )


def read_config(folder: Path) -> dict[str, Any]:
    """The options of a run's config by dotted key; none if it cannot be read."""
    try:
        tree = yaml.safe_load((folder / CONFIG_FILE).read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError):
        return {}
    return dict(_flat(tree)) if isinstance(tree, dict) else {}


def config_changes(folders: Sequence[Path]) -> dict[str, list[Any]]:
    """The options in which runs differ, by key: each run's value, ABSENT where it has none."""
    configs = [read_config(folder) for folder in folders]
    keys = dict.fromkeys(key for config in configs for key in config)
    values = {key: [config.get(key, ABSENT) for config in configs] for key in keys}
    return {key: of for key, of in values.items() if any(value != of[0] for value in of)}


def tag(folder: Path, add: Sequence[str] = (), remove: Sequence[str] = (), note: str | None = None) -> None:
    """Change what people say of a run.

    Raises:
        ConfigError: if it is not a run's folder.
    """
    known = read_run(folder)
    tags = [each for each in dict.fromkeys([*known.tags, *add]) if each not in remove]
    said = {"tags": tags, "note": known.note if note is None else note}
    aside = folder / f"{TAGS_FILE}.part"
    aside.write_text(json.dumps(said, ensure_ascii=False) + "\n", encoding="utf-8")
    os.replace(aside, folder / TAGS_FILE)


def _status(folder: Path, is_finished: bool) -> Status:
    if is_finished:
        return "finished"
    try:
        require_unlocked(folder)
    except ConfigError:
        return "running"
    return "stopped"


def _read_json(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _flat(tree: Mapping[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    flat: list[tuple[str, Any]] = []
    for key, value in tree.items():
        if isinstance(value, dict) and value:
            flat += _flat(value, f"{prefix}{key}.")
        else:
            flat.append((f"{prefix}{key}", value))
    return flat
