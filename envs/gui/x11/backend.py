"""The backend of a task on a desktop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import Any

import numpy as np

from vlrl.environment.host.failure import EnvFailure
from vlrl.envs.gui.actions import Action, Answer, Finish
from vlrl.envs.gui.screen import Element, Form, Screen, Verdict
from vlrl.envs.gui.x11.desktop import Desktop, Machine
from vlrl.envs.gui.x11.pool import pool_of
from vlrl.envs.gui.x11.sandbox.cell import Broken
from vlrl.envs.gui.x11.sandbox.home import Tree, read_app_files, read_home
from vlrl.envs.gui.x11.task import LEVELS, DesktopTask, Setup, judge
from vlrl.errors import ConfigError
from vlrl.seeds import derive_seed


class X11Backend:
    """Tasks on real desktops, a fresh one each episode; see `vlrl.envs.gui.screen.Backend`.

    What dies on a desktop is raised as an EnvFailure that names it: by the call that finds out. What the
    agent itself brings to an end, such as the window manager, is its failure: the episode ends, scored.
    """

    form: Form = "desktop"
    ends_at_goal = True

    def __init__(
        self,
        machine: Machine,
        tasks: Mapping[str, DesktopTask],
        pool: int = 1,
        difficulty: tuple[int, int] = LEVELS,
        themes: Sequence[str] = (),
    ) -> None:
        """Boot `pool` desktops of each theme in the background, so many are kept ready.

        Args:
            machine: the settings of the desktops.
            tasks: the templates, by name.
            pool: desktops of each theme that are kept ready.
            difficulty: the least and the greatest level that a seed draws.
            themes: those that a seed draws from; none is the machine's own.

        Raises:
            ConfigError: without tasks.
        """
        if not tasks:
            raise ConfigError("gui/x11: there are no tasks to choose from")
        self.size, self._tasks = machine.size, dict(sorted(tasks.items()))
        self._difficulty = difficulty
        self._pools = [pool_of(replace(machine, theme=theme)) for theme in themes or (machine.theme,)]
        for of_theme in self._pools:
            of_theme.join(self, pool)
        self._desktop: Desktop | None = None
        self._ending: Future[None] | None = None
        self._setup: Setup | None = None
        self._info: dict[str, Any] = {}

    def reset(self, task: Mapping[str, Any], seed: int) -> Screen:
        """Draw the task's variant and put its files on a fresh desktop.

        Args:
            task: {"name": one of the tasks, "difficulty": 1 to 3}; what is left out follows from the seed.
            seed: of the task and its variant.
        """
        name, level = self._choose(task, seed)
        self.end_episode()
        self._info = {"task": name, "level": level}
        self._setup = setup = self._tasks[name].make(_rng("x11", name, seed), level)
        self._pool = self._pools[_rng("x11-theme", seed).integers(len(self._pools))]
        self._desktop = desktop = self._pool.take()
        if setup.files:
            desktop.write(setup.files)
        self._before: Tree = read_home(desktop.home)
        self._last: Action | None = None
        self._num_done, self._broken = 0, ""
        self._screen = desktop.look()
        return self._screen

    @property
    def task_info(self) -> Mapping[str, Any]:
        """Name and level of the task."""
        return self._info

    @property
    def goal(self) -> str:
        """What the agent is asked to do."""
        return self._current.goal

    @property
    def max_steps(self) -> int:
        """Actions that the task allows for."""
        return self._current.max_steps

    def perform(self, action: Action) -> Screen:
        """Do it, wait until the screen has settled, show it; if that breaks the desktop, its last screen."""
        desktop = self._running
        try:
            if isinstance(action, Answer | Finish):
                self._last = action
                self._screen = desktop.look()
            else:
                self._num_done += 1
                self._screen = desktop.perform(action)
        except Broken as broken:
            self._broken = broken.reason
        return self._screen

    def verdict(self) -> Verdict:
        """How the task stands, by the files as they are now; failed on a desktop that its agent broke."""
        desktop = self._running
        try:
            if not self._broken:
                desktop.check()
        except Broken as broken:
            self._broken = broken.reason
        if self._broken:
            return Verdict(False, 0.0, side_effects=(self._broken,), ended=True, agent_error=self._broken)
        try:
            app_files = read_app_files(desktop.home, self._current.app_files)
            after = {**read_home(desktop.home), **app_files}
        except OSError as error:
            raise EnvFailure("died", f"gui/x11: the home cannot be read: {error}") from error
        return judge(self._current, self._before, after, self._last)

    def oracle(self) -> Action:
        """The next action of the task's script: right if those before it were the script's, too."""
        script = self._current.oracle
        return script[self._num_done] if self._num_done < len(script) else Finish()

    def elements(self) -> Sequence[Element]:
        """The windows, front one last, each with the widgets in it if the machine names them."""
        windows = [] if self._broken else self._running.windows()
        inside = self._running.widgets() if windows else {}
        found: list[Element] = []
        for window in windows:
            states = _FOCUSED if window is windows[-1] else _PLAIN
            found.append(Element("window", window.title, window.box, "", states))
            found += [one for one in inside.pop(window.title, []) if one.role != "window"]
        return found

    def close(self) -> None:
        """Free everything; safe to call twice."""
        self.end_episode()
        if self._ending:
            self._ending.result()
        for of_theme in self._pools:
            of_theme.leave(self)

    def _choose(self, task: Mapping[str, Any], seed: int) -> tuple[str, int]:
        if unknown := sorted(task.keys() - {"name", "difficulty"}):
            raise ConfigError(f"gui/x11: a task has no {unknown[0]!r}; it has a name and a difficulty")
        names, (least, most) = list(self._tasks), self._difficulty
        name = task.get("name", names[_rng("x11-task", seed).integers(len(names))])
        level = task.get("difficulty", int(_rng("x11-level", seed).integers(least, most + 1)))
        if name not in self._tasks:
            raise ConfigError(f"gui/x11: no task is named {name!r} (of those chosen: {', '.join(names)})")
        if level not in range(LEVELS[0], LEVELS[1] + 1):
            raise ConfigError(f"gui/x11: a task has no difficulty {level!r}; give a level 1 to 3")
        return name, level

    def end_episode(self) -> None:
        """End the desktop, in the background."""
        desktop, self._desktop = self._desktop, None
        if desktop:
            self._ending = self._pool.end(desktop)

    @property
    def _current(self) -> Setup:
        if self._setup is None:
            raise RuntimeError("no episode is under way; call reset first")
        return self._setup

    @property
    def _running(self) -> Desktop:
        if self._desktop is None:
            raise RuntimeError("no episode is under way; call reset first")
        return self._desktop


_FOCUSED, _PLAIN = frozenset({"focused"}), frozenset[str]()


def _rng(*path: int | str) -> np.random.Generator:
    return np.random.default_rng(derive_seed(*path))
