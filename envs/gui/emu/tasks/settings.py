"""Tasks in the settings of the system."""

from __future__ import annotations

from functools import partial
from typing import Any

from vlrl.envs.gui.emu.apps.settings import DEFAULTS, MINUTES, MODES, NETWORKS
from vlrl.envs.gui.emu.drawing.theme import PALETTES
from vlrl.envs.gui.emu.oracle.intents import Intent, answer, choose, click, open_app, slide
from vlrl.envs.gui.emu.state import World
from vlrl.envs.gui.emu.strings import tr
from vlrl.envs.gui.emu.task import Draw, Setup, template
from vlrl.envs.gui.emu.wording import listed, worded

CHECKS = (
    ("display", "night_light", "Night light"),
    ("sound", "muted", "Mute"),
    ("sound", "sounds", "System sounds"),
    ("sound", "notifications", "Notifications"),
    ("network", "wifi", "Wi-Fi"),
    ("network", "bluetooth", "Bluetooth"),
    ("privacy", "location", "Location"),
    ("privacy", "crash_reports", "Crash reports"),
)
"""Page, key and name of what is on or off."""


def _is_set(key: str, value: Any, world: World) -> bool:
    return bool(world.settings[key] == value)


def _random(draw: Draw) -> dict[str, Any]:
    """What the settings may be at the start."""
    flags = {key: draw.number(0, 1) == 1 for _, key, _ in CHECKS}
    return {
        **flags,
        "wifi": True,
        "volume": 5 * draw.number(1, 19),
        "brightness": 5 * draw.number(1, 19),
        "network": draw.pick(NETWORKS),
        "power_mode": draw.pick(tuple(MODES)),
        "screen_off": draw.pick(MINUTES),
    }


def _setup(
    draw: Draw, goal: str, before: dict[str, Any], wanted: dict[str, Any], steps: list[Intent]
) -> Setup:
    """Settings that are to have other values."""
    return Setup(
        goal=goal,
        settings=before,
        windows=[("settings", draw.pick(("display", "privacy")))] if draw.level == 1 else [],
        milestones={key: partial(_is_set, key, value) for key, value in wanted.items()},
        changes=[f"setting:{key}" for key in wanted],
        oracle=[*([] if draw.level == 1 else [open_app("settings")]), *steps],
    )


@template("settings/switch", levels=(1, 2, 3))
def switch(draw: Draw) -> Setup:
    """Turn as many things on or off as the level says."""
    before, chosen = _random(draw), draw.picks(CHECKS, draw.level)
    wanted = {key: not before[key] for _, key, _ in chosen}
    said = [
        worded(f"turn “{{name}}” {'on' if wanted[key] else 'off'}", name=tr(name)) for _, key, name in chosen
    ]
    steps = [step for page, key, _ in chosen for step in (choose("page", page), click(key))]
    goal = worded("In the settings, {changes}.", changes=listed(said))
    return _setup(draw, goal, before, wanted, steps)


@template("settings/network", levels=(1, 2))
def network(draw: Draw) -> Setup:
    """Join another Wi-Fi."""
    before = _random(draw)
    name = draw.pick([name for name in NETWORKS if name != before["network"]])
    steps = [choose("page", "network"), choose("network", name)]
    goal = worded("Connect to the Wi-Fi network “{network}”.", network=name)
    return _setup(draw, goal, before, {"network": name}, steps)


@template("settings/power", levels=(1, 2, 3))
def power(draw: Draw) -> Setup:
    """Another power mode, and when the screen is to go dark."""
    before = _random(draw)
    mode = draw.pick([mode for mode in MODES if mode != before["power_mode"]])
    minutes = draw.pick([number for number in MINUTES if number != before["screen_off"]])
    wanted: dict[str, Any] = {"power_mode": mode}
    steps = [choose("page", "power"), choose("power_mode", mode)]
    goal = "Set the power mode to “{mode}”"
    if draw.level > 1:
        wanted["screen_off"] = minutes
        steps.append(choose("screen_off", minutes))
        goal += " and let the screen go off after {minutes} minutes"
    goal = worded(goal + ".", mode=tr(MODES[mode]), minutes=minutes)
    return _setup(draw, goal, before, wanted, steps)


@template("settings/theme", levels=(1, 2, 3))
def theme(draw: Draw) -> Setup:
    """Another theme; with a wallpaper and a brightness at the later levels."""
    before = {"brightness": 5 * draw.number(1, 9)}
    name = draw.pick([name for name in PALETTES if name != draw.looks["theme"]])
    wanted: dict[str, Any] = {"theme": name}
    steps = [choose("page", "display"), choose("theme", name)]
    goal = "Change the theme to {theme}"
    if draw.level > 1:
        wanted["brightness"] = 5 * draw.number(10, 20)
        steps.append(slide("brightness", wanted["brightness"]))
        goal += " and set the brightness to {brightness}"
    if draw.level > 2:
        wanted["night_light"] = True
        steps.append(click("night_light"))
        goal += ", and turn “{name}” on"
    fields = {"theme": name.capitalize(), "brightness": wanted.get("brightness"), "name": tr("Night light")}
    return _setup(draw, worded(goal + ".", **fields), before, wanted, steps)


@template("settings/read", levels=(1, 2))
def read(draw: Draw) -> Setup:
    """Say what a setting is."""
    before = _random(draw)
    page, said, value = draw.pick(
        (
            ("network", "Which Wi-Fi network is chosen?", before["network"]),
            ("power", "After how many minutes does the screen go off?", str(before["screen_off"])),
            ("power", "Which power mode is chosen?", tr(MODES[before["power_mode"]])),
        )
    )
    return Setup(
        goal=f"{worded(said)} {worded('Look in the settings and answer.')}",
        settings=before,
        windows=[("settings", "display")] if draw.level == 1 else [],
        answer=value,
        oracle=[
            *([] if draw.level == 1 else [open_app("settings")]),
            choose("page", page),
            answer(value),
        ],
    )


@template("settings/reset", levels=(1, 2))
def reset(draw: Draw) -> Setup:
    """Set everything back, and say yes to the question."""
    before = {**_random(draw), "volume": 95, "screen_off": draw.pick((1, 2, 5, 15, 30))}
    return Setup(
        goal=worded("Reset all settings to what they were at first."),
        settings=before,
        windows=[("settings", "display")] if draw.level == 1 else [],
        milestones={"reset": lambda world: all(world.settings[key] == DEFAULTS[key] for key in DEFAULTS)},
        changes=[f"setting:{key}" for key in DEFAULTS],
        oracle=[
            *([] if draw.level == 1 else [open_app("settings")]),
            choose("page", "privacy"),
            click("reset"),
            click("yes"),
        ],
    )
