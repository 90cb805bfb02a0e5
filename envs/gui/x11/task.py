"""What a task on a desktop is: files, a goal, what has to be so in the end, and a way there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

import numpy as np

from vlrl.envs.gui.actions import Action, Answer, Finish
from vlrl.envs.gui.screen import UNCLEAN, Verdict
from vlrl.envs.gui.x11.apps import APPS
from vlrl.envs.gui.x11.sandbox.home import Tree, changes

Predicate = Callable[[Tree], bool]
LEVELS = (1, 3)
"""The least and the greatest difficulty of a task: more files, longer texts, more steps."""


@dataclass(frozen=True, slots=True)
class Setup:
    """One variant of a task.

    Attributes:
        goal: the instruction for the agent.
        oracle: actions that reach the goal from the bare desktop.
        files: path below the home → content; a path that ends in / is a folder.
        milestones: conditions by name, each checked on the files alone.
        answer: what has to be said, if the task is a question; then it is a milestone too.
        changed: patterns of the paths that may be added, removed or changed.
        app_files: hidden files of apps that the milestones look at; they may change.
        max_steps: actions that the task allows for.
    """

    goal: str
    oracle: Sequence[Action]
    files: Mapping[str, bytes] = field(default_factory=dict)
    milestones: Mapping[str, Predicate] = field(default_factory=dict)
    answer: str | None = None
    changed: Sequence[str] = ()
    app_files: Sequence[str] = ()
    max_steps: int = 30


@dataclass(frozen=True, slots=True)
class DesktopTask:
    """A template of a task.

    Attributes:
        name: as in the option `tasks`.
        apps: of apps.APPS, those that its oracle uses.
        make: makes a variant from random numbers and the difficulty, 1 to 3.
    """

    name: str
    apps: tuple[str, ...]
    make: Callable[[np.random.Generator, int], Setup]


def optional_apps(tasks: Iterable[DesktopTask]) -> frozenset[str]:
    """The large apps that tasks need on their desktop."""
    return frozenset(name for task in tasks for name in task.apps if APPS[name].optional)


def judge(setup: Setup, before: Tree, after: Tree, last: Action | None) -> Verdict:
    """How a task stands.

    Args:
        setup: the task.
        before: the files at the beginning.
        after: the files now.
        last: the agent's Answer or Finish if it gave one.
    """
    reached = {name: holds(after) for name, holds in setup.milestones.items()}
    if setup.answer is not None:
        said = last.text.strip().casefold() if isinstance(last, Answer) else None
        reached["answered"] = said == setup.answer.casefold()
    harm = tuple(
        f"{path} was changed"
        for path in changes(before, after)
        if not any(fnmatchcase(path, pattern) for pattern in (*setup.changed, *setup.app_files))
    )
    gave_up = isinstance(last, Finish) and not last.success
    success = all(reached.values()) and not harm and not gave_up
    share = sum(reached.values()) / max(1, len(reached))
    progress = 1.0 if success else 0.0 if gave_up else share * (UNCLEAN if harm else 1.0)
    return Verdict(success, progress, reached, harm)
