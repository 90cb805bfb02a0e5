"""Where a model comes from: vlrl_export.json in an exported folder, and a run's chain of earlier runs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from vlrl import __version__
from vlrl.errors import ConfigError
from vlrl.experiments.registry import read_run
from vlrl.export.source import ExportSource, accuracies
from vlrl.run.lineage import parent_run, read_lineage
from vlrl.run.resume import CONFIG_FILE

EXPORT_FILE = "vlrl_export.json"
"""Of an exported folder: name, run, step, base, parents, config, data, evaluation, code."""
SERVED_SECTIONS = ("model", "processor", "media", "generator", "rollout")
"""Sections of the config by which a model answers as it did in its run."""


def provenance(run_dir: Path, weights: ExportSource) -> dict[str, Any]:
    """What is known of a run's model, JSON-ready.

    Raises:
        ConfigError: if it is not a run's folder, or its config cannot be read.
    """
    record, lineage = read_run(run_dir), read_lineage(run_dir)
    starts = [entry for entry in lineage if int(entry.get("first_step", 0)) <= weights.step]
    last: Mapping[str, Any] = starts[-1] if starts else {}
    ancestry = ancestors(run_dir)
    return {
        "name": record.name,
        "run": str(run_dir.absolute()),
        "step": weights.step,
        "base": ancestry[-1]["model"] if ancestry else "",
        "ancestry": ancestry,
        "evaluation": [
            {"step": step, "how": how, "accuracy": mean, "num_rows": count}
            for step, of_step in accuracies(run_dir).items()
            for how, (mean, count) in of_step.items()
        ],
        "data": list(last.get("data", [])),
        "code": dict(last.get("code", {"vlrl": __version__})),
        "versions": dict(record.summary.get("versions", {})),
        "device": str(record.summary.get("device", "")),
        "seed": record.seed,
        "config": run_config(run_dir),
    }


def run_config(run_dir: Path) -> dict[str, Any]:
    """A run's config as a tree.

    Raises:
        ConfigError: if it cannot be read.
    """
    path = run_dir / CONFIG_FILE
    try:
        tree = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError) as error:
        raise ConfigError(f"{path} cannot be read: {error}") from error
    if not isinstance(tree, dict):
        raise ConfigError(f"{path} is not a config; give a run's folder")
    return tree


def ancestors(run_dir: Path) -> list[dict[str, Any]]:
    """The run and those that it builds on, the youngest first: `run`, `model` it began with, `fingerprint`.

    A parent whose folder is gone ends the list; the last entry's model is then the oldest one known.
    """
    found: list[dict[str, Any]] = []
    seen: set[Path] = set()
    current: Path | None = run_dir.absolute()
    while current is not None and current not in seen:
        seen.add(current)
        lineage = read_lineage(current)
        model = dict(lineage[0].get("model", {})) if lineage else {}
        path = str(model.get("path", "")) or str(run_config(current).get("model", {}).get("path", ""))
        entry = {"run": str(current), "name": current.name, "model": path}
        found.append(entry | ({"fingerprint": model["fingerprint"]} if "fingerprint" in model else {}))
        if (exported := read_provenance(Path(path))) is not None:
            return found + list(exported.get("ancestry", []))
        named = model.get("parent_run")
        parent = Path(named) if named else parent_run(path) if path else None
        current = parent if parent is not None and (parent / CONFIG_FILE).is_file() else None
    return found


def read_provenance(folder: Path) -> dict[str, Any] | None:
    """What an exported folder says of itself; None if it is not one."""
    try:
        found = json.loads((folder / EXPORT_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def figure_of(said: Mapping[str, Any], how: str = "greedy") -> float | None:
    """The held-out accuracy of the model that was exported; None if it was not measured at its step."""
    for row in said.get("evaluation", []):
        if row["step"] == said.get("step") and row["how"] == how:
            return float(row["accuracy"])
    return None
