"""What the page asks for, by address: JSON of one run or of all, the same served and written."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from vlrl.errors import ConfigError, DataError
from vlrl.tracking.rollouts.paths import train_files
from vlrl.tracking.sinks import METRICS_FILE
from vlrl.viewer.browse.explain import explain_parts
from vlrl.viewer.browse.opened import OpenRun
from vlrl.viewer.run import RunFolder
from vlrl.viewer.verdict import verdict

RANGE = re.compile(r"(\d{1,9})-(\d{1,9})")
NUMBER = re.compile(r"\d{1,9}")


class ViewAnswers:
    """The runs that are viewed.

    Attributes:
        runs: by the key that addresses have.
    """

    def __init__(self, run_dirs: Sequence[Path]) -> None:
        """Open the folders.

        Raises:
            ConfigError: for one that is not a run's folder.
        """
        self.runs: dict[str, OpenRun] = {}
        for run_dir in run_dirs:
            _require_run(run_dir)
            key = _free_key(run_dir.resolve().name, self.runs)
            self.runs[key] = OpenRun(run_dir, key)

    def answer(self, path: str) -> dict[str, Any]:
        """The JSON at an address.

        Args:
            path: manifest, or KEY/curves, KEY/health, KEY/timeline, KEY/index/FIRST-LAST,
                KEY/texts/FIRST-LAST or KEY/rollout/STEP/ROW.

        Raises:
            DataError: if there is nothing.
        """
        if path == "manifest":
            return self.manifest()
        key, _, what = path.partition("/")
        if key not in self.runs:
            raise DataError(f"no run {key!r} is viewed")
        run, parts = self.runs[key], what.split("/")
        match parts:
            case ["curves"]:
                return run.curves()
            case ["health"]:
                return run.health()
            case ["timeline"]:
                return run.timeline()
            case ["index", steps] if found := RANGE.fullmatch(steps):
                return run.index(int(found[1]), int(found[2]))
            case ["texts", steps] if found := RANGE.fullmatch(steps):
                return run.texts(int(found[1]), int(found[2]))
            case ["rollout", step, row] if NUMBER.fullmatch(step) and NUMBER.fullmatch(row):
                return run.rollout(int(step), int(row))
        raise DataError(f"{what!r} is not something that a run has")

    def manifest(self) -> dict[str, Any]:
        """What there is of every run, with versions that change when there is more of it."""
        groups = _seed_groups(self.runs.values())
        return {"runs": [self._described(run, groups.get(run.key)) for run in self.runs.values()]}

    def _described(self, run: OpenRun, group: int | None) -> dict[str, Any]:
        folder = RunFolder(run.key, run.summary, run.config, "", run.metrics(), [])
        tone, sentence = verdict(folder)
        return {
            "key": run.key,
            "group": group,
            "tone": tone,
            "verdict": sentence,
            "facts": _facts(run, folder),
            "steps": [list(step) for step in run.steps()],
            "metrics": run.metrics_version(),
            "num_steps": folder.num_steps,
            "is_done": bool(run.summary),
            "has_timeline": (run.run_dir / "timeline.jsonl").is_file(),
            "parts": explain_parts(run.option("rewards")),
        }


def _require_run(run_dir: Path) -> None:
    if not run_dir.is_dir():
        raise ConfigError(f"{run_dir} is not a folder; vlrl view takes the folders of runs")
    if not (run_dir / METRICS_FILE).is_file() and not train_files(run_dir):
        raise ConfigError(
            f"{run_dir} is not a run's folder, or its first step is not done yet: it has neither "
            f"{METRICS_FILE} nor rollouts/train"
        )


def _free_key(name: str, taken: Mapping[str, Any]) -> str:
    """The name as addresses and files may have it, with a number if there is another such run."""
    name = re.sub(r"[^A-Za-z0-9_.-]+", "-", name).strip(".-") or "run"
    key, number = name, 2
    while key in taken:
        key, number = f"{name}-{number}", number + 1
    return key


def _seed_groups(runs: Any) -> dict[str, int]:
    """Key → number of its group, of runs whose configs differ in nothing but the seed and the name."""
    members: dict[str, list[str]] = {}
    for run in runs:
        if run.config:
            config = {**run.config, "run": None}
            members.setdefault(yaml.safe_dump(config, sort_keys=True), []).append(run.key)
    groups = [keys for keys in members.values() if len(keys) > 1]
    return {key: number for number, keys in enumerate(groups) for key in keys}


def _facts(run: OpenRun, folder: RunFolder) -> list[list[str]]:
    size = folder.summary.get("num_parameters")
    facts = (
        ("model", folder.summary.get("model_path", run.option("model.path"))),
        ("parameters", f"{size / 1e6:,.1f} M" if isinstance(size, int | float) else None),
        ("algorithm", run.option("algorithm.name")),
        ("seed", folder.summary.get("seed", run.option("run.seed"))),
        ("device", folder.summary.get("device")),
    )
    return [[name, str(value)] for name, value in facts if value is not None]
