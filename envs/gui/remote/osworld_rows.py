"""OSWorld's task files as rows of data: those that can be verified, and not too many that cannot be done.

Without OSWorld's package gui/osworld verifies few of its tasks, and among these the infeasible ones are the
majority: whoever always says that a task cannot be done wins them. So of those, no more are taken than a
share of all.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from vlrl.envs.gui.remote.evaluators.package import OSWorldPackage
from vlrl.envs.gui.remote.osworld_setup import check_steps
from vlrl.envs.gui.remote.osworld_task import check_evaluator
from vlrl.errors import ConfigError, DataError
from vlrl.seeds import derive_seed


class Survey(NamedTuple):
    """Counts of the task files that were found, and of those that were taken.

    Attributes:
        found: task files.
        verified: of these, what gui/osworld can verify.
        infeasible: of these, what cannot be done.
        taken: rows.
        always_fail: share of the rows that an agent wins which always says that they cannot be done.
    """

    found: int
    verified: int
    infeasible: int
    taken: int
    always_fail: float


def osworld_rows(
    folder: Path, options: Mapping[str, Any], *, infeasible_share: float, seed: int = 0
) -> tuple[list[dict[str, Any]], Survey]:
    """Rows of a folder of OSWorld's (evaluation_examples/examples), in the order of their files.

    Args:
        folder: with a JSON file a task, in folders by application.
        options: of the environment gui/osworld; its evaluators say what can be verified.
        infeasible_share: most of the rows that cannot be done; 1 takes all.
        seed: of the choice among those.

    Raises:
        ConfigError: for a share out of range.
        DataError: if there is no task, or a file is none.
    """
    if not 0 <= infeasible_share <= 1:
        raise ConfigError(f"infeasible_share={infeasible_share}; give a share from 0 to 1")
    files = sorted(folder.rglob("*.json"))
    tasks = [task for task in map(_task, files) if task is not None]
    if not tasks:
        raise DataError(f"{folder} has no task file of OSWorld; give its evaluation_examples/examples")
    package = OSWorldPackage(options["evaluators"]) if options.get("evaluators") else None
    known = [task for task in tasks if _is_known(task, package)]
    hopeless = [number for number, task in enumerate(known) if task["evaluator"]["func"] == "infeasible"]
    num_feasible = len(known) - len(hopeless)
    most = len(hopeless)
    if infeasible_share < 1:
        most = min(most, int(num_feasible * infeasible_share / (1 - infeasible_share)))
    rng = np.random.default_rng(derive_seed("osworld rows", seed))
    dropped = set(hopeless) - set(rng.permutation(hopeless)[:most].tolist())
    rows = [_row(task, options) for number, task in enumerate(known) if number not in dropped]
    share = most / len(rows) if rows else 0.0
    return rows, Survey(len(tasks), len(known), len(hopeless), len(rows), share)


def _task(file: Path) -> dict[str, Any] | None:
    """A file's task; None of one that is something else, as a list of tasks."""
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise DataError(f"{file}: no JSON: {error}") from error
    return found if isinstance(found, dict) and {"id", "instruction", "evaluator"} <= found.keys() else None


def _is_known(task: Mapping[str, Any], package: OSWorldPackage | None) -> bool:
    try:
        check_evaluator(task["evaluator"], package)
        check_steps(task.get("config", ()), package)
    except ConfigError:
        return False
    return True


def _row(task: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
    env = {"name": "gui/osworld", "options": dict(options), "task": dict(task)}
    return {
        "id": str(task["id"]),
        "messages": [{"role": "user", "content": str(task["instruction"])}],
        "env": env,
    }
