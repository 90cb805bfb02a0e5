"""What the large apps of gui/x11 cost: their start, the actions of the tasks' scripts, and stale screenshots.

    python benchmarks/x11_apps.py [--json] [--apps claws-mail firefox-esr] [--tasks 4]

Each app's tasks are played by their scripts, on a desktop each. A screenshot is stale if the screen is
another one 1.5 s after the start, or 1 s after an action. Memory is the PSS of all processes of the desktop
at the end of a script. Apps that are not here are left out.
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import NamedTuple

import numpy as np
import psutil

from vlrl.envs.gui.actions import Answer, OpenApp
from vlrl.envs.gui.x11.apps import APPS, lacking
from vlrl.envs.gui.x11.desktop import Desktop, Machine
from vlrl.envs.gui.x11.task import DesktopTask
from vlrl.envs.gui.x11.tasks import TASKS
from vlrl.process.json_stdout import parse_with_json, print_json

LARGE = tuple(name for name, app in APPS.items() if app.optional)
SETTLE_S = 20.0
LATER_S = {True: 1.5, False: 1.0}
"""After a start, after another action."""


def measured(app: str, num_tasks: int) -> dict[str, float | str]:
    """Starts and actions of some of an app's tasks."""
    tasks = [task for task in TASKS.values() if app in task.apps][:num_tasks]
    memory, screens = list[int](), list[_Screen]()
    for task in tasks:
        screens += played(task, app)
        desktop = screens[-1].desktop
        memory.append(
            sum(psutil.Process(pid).memory_full_info().pss for pid in desktop.processes()) / (1 << 20)
        )
        desktop.close()
    starts, actions = (
        [screen.seconds for screen in screens if screen.is_start is wanted] for wanted in (True, False)
    )
    return {
        "app": APPS[app].title,
        "start_s": round(statistics.median(starts), 2),
        "action_s": round(statistics.median(actions), 2),
        "longest_s": round(max(actions), 2),
        "stale": sum(screen.is_stale for screen in screens),
        "screens": len(screens),
        "memory_mib": round(statistics.median(memory) / (1 << 20)),
    }


class _Screen(NamedTuple):
    desktop: Desktop
    is_start: bool
    seconds: float
    is_stale: bool


def played(task: DesktopTask, app: str) -> list[_Screen]:
    """The screens of a task's script, on a desktop that is left open."""
    desktop = Desktop(Machine(settle_s=SETTLE_S, apps=frozenset({app})))
    setup, found = task.make(np.random.default_rng(1), 2), []
    desktop.write(setup.files)
    for action in setup.oracle:
        if isinstance(action, Answer):
            break
        begin = time.perf_counter()
        shown = desktop.perform(action)
        seconds, is_start = time.perf_counter() - begin, isinstance(action, OpenApp)
        time.sleep(LATER_S[is_start])
        is_stale = not np.array_equal(shown.pixels, desktop.look().pixels)
        found.append(_Screen(desktop, is_start, seconds, is_stale))
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--apps", nargs="+", choices=LARGE, default=list(LARGE))
    parser.add_argument("--tasks", type=int, default=4, help="of each app")
    args = parse_with_json(parser)
    rows = [measured(app, args.tasks) for app in args.apps if not lacking([app])]
    if args.json:
        print_json({"rows": rows})
        return
    for row in rows:
        print("   ".join(f"{name} {value}" for name, value in row.items()))


if __name__ == "__main__":
    main()
