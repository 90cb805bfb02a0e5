"""Tasks with windows and what is around them."""

from __future__ import annotations

from functools import partial

from vlrl.envs.gui.emu.app import APPS
from vlrl.envs.gui.emu.oracle.intents import Intent, click, double_click, open_app
from vlrl.envs.gui.emu.state import World
from vlrl.envs.gui.emu.strings import tr
from vlrl.envs.gui.emu.task import Draw, Setup, template
from vlrl.envs.gui.emu.tasks.content.words import LINES, STEMS
from vlrl.envs.gui.emu.windows import wm
from vlrl.envs.gui.emu.wording import listed, worded

NAMES = ("files", "calculator", "calendar", "editor", "settings")


def _windows(draw: Draw, count: int) -> list[str]:
    """Apps to be open, the front one last."""
    return draw.picks(NAMES, count)


def _is_open(world: World, app: str) -> bool:
    return any(window.app == app for window in world.windows)


def _is_closed(world: World, app: str) -> bool:
    return not _is_open(world, app)


def _said(app: str) -> str:
    return tr(APPS[app].label)


def _raise(apps: list[str], app: str) -> list[Intent]:
    """Bring a window to the front by the task bar; the front one is there already."""
    return [] if app == apps[-1] else [click(f"task:{apps.index(app) + 1}")]


@template("desktop/open_app", levels=(1, 2, 3))
def start_app(draw: Draw) -> Setup:
    """Start as many apps as the level says."""
    wanted = draw.picks(NAMES, draw.level)
    return Setup(
        owns_windows=True,
        goal=worded("Open {apps}.", apps=listed([_said(app) for app in wanted])),
        files={f"/Documents/{draw.pick(STEMS)}.txt": draw.pick(LINES)},
        milestones={app: partial(_is_open, app=app) for app in wanted},
        over=lambda world: any(window.app not in wanted for window in world.windows),
        oracle=[open_app(app) for app in wanted],
    )


@template("desktop/close", levels=(1, 2, 3), forms=("desktop",))
def close(draw: Draw) -> Setup:
    """Close one of two to four windows, and leave the others."""
    apps = _windows(draw, draw.level + 1)
    gone = draw.pick(apps)
    others = [app for app in apps if app != gone]
    return Setup(
        owns_windows=True,
        goal=worded("Close the window of {app} and leave the others open.", app=_said(gone)),
        windows=[(app, "") for app in apps],
        milestones={"closed": lambda world: not _is_open(world, gone)},
        over=lambda world: not all(_is_open(world, app) for app in others),
        oracle=[*_raise(apps, gone), click("window.close")],
    )


@template("desktop/close_all", levels=(1, 2, 3), forms=("desktop",))
def close_all(draw: Draw) -> Setup:
    """Close every window but one."""
    apps = _windows(draw, draw.level + 2)
    kept = apps[0]
    return Setup(
        owns_windows=True,
        goal=worded("Close all windows except that of {app}.", app=_said(kept)),
        windows=[(app, "") for app in apps],
        milestones={f"closed {app}": partial(_is_closed, app=app) for app in apps[1:]},
        over=lambda world: not _is_open(world, kept),
        oracle=[click("window.close")] * (len(apps) - 1),
    )


def _state_task(draw: Draw, verb: str, button: str) -> Setup:
    apps = _windows(draw, draw.level + 1)
    app = apps[0] if draw.level > 1 else draw.pick(apps)
    number = apps.index(app) + 1

    def done(world: World) -> bool:
        window = world.window(number)
        return window is not None and (window.is_minimized if button == "minimize" else window.is_maximized)

    def others(world: World) -> bool:
        return any(
            window.number != number and (window.is_minimized or window.is_maximized)
            for window in world.windows
        ) or len(world.windows) < len(apps)

    return Setup(
        owns_windows=True,
        goal=worded(f"{verb} the window of {{app}}, and only that one.", app=_said(app)),
        windows=[(name, "") for name in apps],
        milestones={verb.lower(): lambda world: done(world) and not others(world)},
        over=others,
        oracle=[*_raise(apps, app), click(f"window.{button}")],
    )


@template("desktop/minimize", levels=(1, 2, 3), forms=("desktop",))
def minimize(draw: Draw) -> Setup:
    """Minimise one window of several."""
    return _state_task(draw, "Minimise", "minimize")


@template("desktop/maximize", levels=(1, 2, 3), forms=("desktop",))
def maximize(draw: Draw) -> Setup:
    """Maximise one window of several."""
    return _state_task(draw, "Maximise", "maximize")


@template("desktop/to_front", levels=(1, 2, 3), forms=("desktop",))
def to_front(draw: Draw) -> Setup:
    """Bring a window to the front."""
    apps = _windows(draw, draw.level + 2)
    app = draw.pick(apps[:-1])

    def in_front(world: World) -> bool:
        front = wm.front(world)
        return front is not None and front.app == app and len(world.windows) == len(apps)

    return Setup(
        owns_windows=True,
        goal=worded("Bring the window of {app} to the front.", app=_said(app)),
        windows=[(name, "") for name in apps],
        milestones={"in front": in_front},
        over=lambda world: len(world.windows) < len(apps),
        oracle=_raise(apps, app),
        max_steps=3,
    )


@template("desktop/open_icon", levels=(1, 2), forms=("desktop",))
def open_icon(draw: Draw) -> Setup:
    """Open one of the files on the desktop by its icon."""
    stems = draw.picks(STEMS, 2 + draw.level)
    path = f"/Desktop/{stems[0]}.txt"
    return Setup(
        owns_windows=True,
        goal=worded("Open the file {file} that lies on the desktop.", file=f"{stems[0]}.txt"),
        files={f"/Desktop/{stem}.txt": draw.pick(LINES) for stem in stems},
        milestones={"opened": lambda world: (e := world.app("editor")) is not None and e.path == path},
        over=lambda world: (e := world.app("editor")) is not None and e.path != path,
        oracle=[double_click(f"file:{path}")],
        max_steps=4,
    )
