"""gui/x11: tasks on real desktops."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, get_args

import numpy as np

from vlrl.envs.gui.codecs.open import can_answer
from vlrl.envs.gui.env import GuiEnv
from vlrl.envs.gui.rules import GuiRules
from vlrl.envs.gui.x11.apps import APPS, lacking
from vlrl.envs.gui.x11.backend import X11Backend
from vlrl.envs.gui.x11.desktop import Machine
from vlrl.envs.gui.x11.looks import THEMES, check_themes
from vlrl.envs.gui.x11.sandbox.box import Sandbox, check_bus
from vlrl.envs.gui.x11.task import LEVELS, DesktopTask, optional_apps
from vlrl.envs.gui.x11.tasks import TASKS
from vlrl.errors import ConfigError


class X11Env(GuiEnv):
    """Work in Debian's apps on a desktop of one's own, from files to answers."""

    def __init__(
        self,
        size: Sequence[int] = (1280, 800),
        tasks: Sequence[str] = ("*",),
        difficulty: Sequence[int] | int = LEVELS,
        theme: Sequence[str] | str = tuple(THEMES),
        pool: int = 1,
        settle_s: float = 3.0,
        sandbox: Sandbox = "require",
        **rules: Any,
    ) -> None:
        """Choose tasks and desktops.

        Args:
            size: [width, height] of the screen in pixels.
            tasks: names or patterns such as files_*; those whose apps are not installed are left out, with
                a warning.
            difficulty: the level, 1 to 3, or [least, most].
            theme: how windows and widgets look: classic, modern or dark, or a list that the seed draws from.
            pool: desktops of each theme kept booted ahead for this environment, about 40 MiB each.
            settle_s: how long the screen may take to settle after an action before it is shown as it is.
            sandbox: "require", or "warn" to go on without one, loudly, where none can be made.
            rules: of every screen; see `GuiRules`. With `widgets`, or to `observe` them, the apps tell their
                widgets over a bus, and `elements()` has them; else it has the windows alone.

        Raises:
            ConfigError: for an option out of range.
        """
        if len(size) != 2 or not all(isinstance(n, int) and 320 <= n <= 4096 for n in size):
            raise ConfigError(
                f"env gui/x11: option size={size!r}; give [width, height], each from 320 to 4096"
            )
        if isinstance(pool, bool) or not isinstance(pool, int) or not 0 <= pool <= 64:
            raise ConfigError(f"env gui/x11: option pool={pool!r}; give a whole number from 0 to 64")
        if not 0 < settle_s <= 60:
            raise ConfigError(f"env gui/x11: option settle_s={settle_s!r}; give seconds from 0 to 60")
        if sandbox not in get_args(Sandbox):
            raise ConfigError(f"env gui/x11: option sandbox={sandbox!r}; require or warn")
        least, most = (difficulty, difficulty) if isinstance(difficulty, int) else tuple(difficulty)
        if not LEVELS[0] <= least <= most <= LEVELS[1]:
            raise ConfigError(
                f"env gui/x11: option difficulty={difficulty!r}; give a level 1 to 3 or [least, most]"
            )
        themes = [theme] if isinstance(theme, str) else list(theme)
        check_themes(themes)
        chosen = {
            name: task
            for name, task in TASKS.items()
            if any(fnmatchcase(name, pattern) for pattern in ([tasks] if isinstance(tasks, str) else tasks))
        }
        if not chosen:
            raise ConfigError(f"env gui/x11: option tasks={tasks!r} matches none of {', '.join(TASKS)}")
        chosen = answerable(installed(chosen), str(rules.get("codec", GuiRules().codec)))
        machine = Machine(
            (size[0], size[1]),
            sandbox,
            settle_s,
            optional_apps(chosen.values()),
            names_widgets=bool(rules.get("widgets")) or rules.get("observe", "screenshot") != "screenshot",
        )
        if machine.names_widgets:
            check_bus()
        super().__init__(X11Backend(machine, chosen, pool, (least, most), themes), **rules)


def installed(tasks: Mapping[str, DesktopTask]) -> dict[str, DesktopTask]:
    """The tasks whose apps are on this machine; a warning names the packages that others need.

    Raises:
        ConfigError: if none is left.
    """
    missing = {name: lacking(task.apps) for name, task in tasks.items()}
    left = {name: task for name, task in tasks.items() if not missing[name]}
    if len(left) == len(tasks):
        return left
    packages = {package for apps in missing.values() for app in apps for package in APPS[app].package.split()}
    command = f"apt-get install --no-install-recommends {' '.join(sorted(packages))}"
    without = ", ".join(name for name in tasks if missing[name])
    if not left:
        raise ConfigError(f"gui/x11: the tasks {without} need apps that are not here. Debian: {command}")
    warnings.warn(
        f"gui/x11 leaves out {without}: their apps are not here. Debian: {command}",
        RuntimeWarning,
        stacklevel=3,
    )
    return left


def answerable(tasks: Mapping[str, DesktopTask], codec: str) -> dict[str, DesktopTask]:
    """The tasks that can be done in a grammar: without questions where it has no word for an answer.

    Raises:
        ConfigError: if none is left.
    """
    if can_answer(codec):
        return dict(tasks)
    left = {n: task for n, task in tasks.items() if task.make(np.random.default_rng(0), 1).answer is None}
    if not left:
        raise ConfigError(
            f"env gui/x11: the tasks {', '.join(tasks)} ask for an answer, which the codec {codec!r} has no "
            "word for; docs/gui_actions.md says which have"
        )
    return left
