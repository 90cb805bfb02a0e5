"""MiniWoB++ of the Farama Foundation: its pages, at three times their size, without their time limit.

Liu et al., Reinforcement Learning on Web Interfaces using Workflow-Guided Exploration, arXiv 1802.08802. Only
the pages of the package `miniwob` are used; its Python, which drives Selenium, is never imported.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

import numpy as np

from vlrl.envs.gui.actions import Action
from vlrl.envs.gui.screen import Screen, Verdict
from vlrl.envs.gui.web.backend import WebBackend, chosen_names, drawn_name, quoted
from vlrl.envs.gui.web.chromium.chrome import Sandbox
from vlrl.envs.gui.web.chromium.gate import Gate
from vlrl.envs.gui.web.look import Look
from vlrl.envs.gui.web.miniwob.marks import is_solved
from vlrl.envs.gui.web.miniwob.oracle import next_action
from vlrl.errors import ConfigError
from vlrl.seeds import derive_seed

TASK_SIZE, WINDOW_SIZE = (160, 210), (500, 320)
"""CSS pixels: of a task, and of the window that its pages are laid out for."""
NO_LIMIT_MS = 2**31 - 1
MAX_STEPS = 30

_BEGIN = """(() => {
  core.EPISODE_MAX_TIME = %d;
  Math.seedrandom(%s);
  core.startEpisodeReal();
  const said = core.getUtterance(); // of three tasks with its parts, which nobody is told
  const goal = typeof said === "string" ? said : said.utterance;
  return [goal, document.getElementById("query").getBoundingClientRect().bottom];
})()"""
_STANDING = "[WOB_DONE_GLOBAL, WOB_RAW_REWARD_GLOBAL]"


@functools.cache
def pages_folder() -> Path:
    """Where the package's pages are.

    Raises:
        ConfigError: if it is not installed.
    """
    try:
        found = distribution("miniwob")
    except PackageNotFoundError:
        raise ConfigError(
            "gui/miniwob needs the pages of the package miniwob: pip install --no-deps miniwob (its "
            "dependencies, Selenium and all, are not used)"
        ) from None
    return Path(str(found.locate_file("miniwob"))) / "html"


@functools.cache
def task_names() -> tuple[str, ...]:
    """Every task that the package registers and that is a page of MiniWoB, not a site of FlightWoB."""
    registered = (pages_folder().parent / "registration.py").read_text(encoding="utf-8")
    names = set(re.findall(r'id="miniwob/([\w-]+)-v\d+"', registered))
    return tuple(sorted(name for name in names if (pages_folder() / "miniwob" / f"{name}.html").is_file()))


def chosen(patterns: Sequence[str] | str | None) -> tuple[str, ...]:
    """The tasks that any of the patterns names, all for None.

    Raises:
        ConfigError: for a pattern that names none.
    """
    return task_names() if patterns is None else chosen_names(patterns, task_names(), "gui/miniwob")


class MiniWob(WebBackend):
    """One of the tasks an episode.

    The verdict's reward is the page's own before it is scaled by time, -1 to 1; progress is its positive
    part, success is what `miniwob_marks` says of it.
    """

    max_steps = MAX_STEPS
    _watched = _STANDING

    def __init__(
        self,
        tasks: Sequence[str] | str | None = None,
        scale: int = 3,
        step_ms: int = 48,
        settle_ms: int = 640,
        limit_s: float = 30.0,
        sandbox: Sandbox = "require",
    ) -> None:
        """Choose the tasks.

        Args:
            tasks: names or patterns such as "click-*"; None for all.
            scale: pixels of the image to a pixel of the page.
            step_ms: see `Look`, and so the others.
            settle_ms: the same.
            limit_s: the same.
            sandbox: "require", or "warn" to go on without one, loudly, where none can be made.

        Raises:
            ConfigError: for an option out of range, or if something is not installed.
        """
        self.tasks = chosen(tasks)
        look = Look(WINDOW_SIZE, float(scale), "desktop", step_ms, settle_ms, limit_s, shown=TASK_SIZE)
        super().__init__(Gate(pages_folder()), look, sandbox)
        self._name = self._goal = ""
        self._verdict = Verdict(False, 0.0)
        self._utterance_end, self._num_hints = 0.0, 0

    def reset(self, task: Mapping[str, Any], seed: int) -> Screen:
        """See `Backend`; task may have a name, else one is drawn by the seed."""
        rng = np.random.default_rng(derive_seed("miniwob", seed))
        self._name = name = drawn_name(
            self.tasks, task, lambda number: int(rng.integers(number)), "gui/miniwob"
        )
        page = self.open(f"/miniwob/{name}.html", derive_seed("miniwob page", seed))
        goal, end = page.evaluate(_BEGIN % (NO_LIMIT_MS, quoted(str(seed))))
        self._goal, self._utterance_end = str(goal), end * self._look.scale
        self._num_hints = 0
        page.rest()
        self._look_up(page.evaluate(_STANDING))
        return self.show()

    @property
    def task_info(self) -> Mapping[str, Any]:
        """Name of the task."""
        return {"task": self._name}

    @property
    def goal(self) -> str:
        """The task's utterance."""
        return self._goal

    def perform(self, action: Action) -> Screen:
        """See `Backend`."""
        screen = super().perform(action)
        self._look_up(self._seen)
        return screen

    def oracle(self) -> Action:
        """A right next action.

        Raises:
            NoOracle: for a task that no rule knows.
        """
        below = [e for e in self.elements() if e.box[1] >= self._utterance_end]
        self._num_hints += 1
        return next_action(self._goal, below, self._num_hints - 1)

    def verdict(self) -> Verdict:
        """See `Backend`."""
        return self._verdict

    def _look_up(self, standing: Sequence[Any]) -> None:
        done, reward = standing
        reward = float(reward) if done else 0.0
        won = is_solved(self._name, reward)
        self._verdict = Verdict(won, max(reward, 0.0), {"solved": won}, ended=bool(done), reward=reward)
