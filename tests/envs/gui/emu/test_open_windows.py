"""The axis `windows`: what is open at the start, and the scales that a screen has room for."""

from __future__ import annotations

import pytest
from oracle_plays import failures

from vlrl.envs.gui.emu.desktop import Desktop
from vlrl.envs.gui.emu.env import EmuEnv
from vlrl.envs.gui.emu.task import TEMPLATES
from vlrl.envs.gui.emu.variation import CHOICES, LEAST
from vlrl.envs.gui.emu.windows.wm import work_area
from vlrl.errors import ConfigError

NAMES = ["across/alarm_from_note", "desktop/maximize", "editor/add_line", "mail/star", "paint/fill"]


def begun(windows: str, name: str = "settings/read", seed: int = 0, **options: object) -> Desktop:
    desktop = EmuEnv(windows=windows, **options).backend  # type: ignore[arg-type]
    assert isinstance(desktop, Desktop)
    desktop.reset({"name": name, "difficulty": 1}, seed)
    return desktop


def test_others_are_open_behind_that_of_the_task() -> None:
    counts = set()
    for seed in range(12):
        windows = begun("many", seed=seed).world.windows
        assert windows[-1].app == "settings" and "settings" not in {w.app for w in windows[:-1]}
        counts.add(len(windows))
    assert counts == {3, 4, 5}


def test_a_window_fills_the_work_area_or_half_of_it() -> None:
    desktop = begun("maximised")
    area = work_area(desktop.world)
    assert next(e.box for e in desktop.elements() if e.role == "window") == area
    tiled = begun("tiled", "desktop/open_app", size=(1280, 800))
    assert not tiled.world.windows  # it is about windows: nothing is open, and nothing tiled
    tiled = begun("tiled", size=(1280, 800), scale=100, font_size=13)
    x0, y0, x1, y1 = tiled.world.windows[0].box
    area = work_area(tiled.world)
    assert (x0, y0, y1) == (area[0], area[1], area[3]) and x1 == (area[0] + area[2]) // 2


@pytest.mark.parametrize("windows", CHOICES["windows"])
def test_tasks_can_be_done_whatever_is_open(windows: str) -> None:
    assert failures("desktop", NAMES, 3, windows=windows) == []


def test_no_other_window_is_part_of_what_is_to_be_done() -> None:
    for seed, name in enumerate(sorted(TEMPLATES)):
        if "desktop" in TEMPLATES[name].forms:
            desktop = EmuEnv(windows="many", tasks=name).backend
            assert isinstance(desktop, Desktop)
            desktop.reset({}, seed)
            verdict = desktop.verdict()
            assert not any(verdict.milestones.values()) and not verdict.ended, name


def test_a_scale_is_drawn_where_the_screen_has_room_for_it() -> None:
    for scale, size in LEAST["desktop"].items():
        desktop = EmuEnv(size=size).backend
        assert isinstance(desktop, Desktop)
        fitting = desktop.variation.choices["scale"]
        assert scale in fitting and all(LEAST["desktop"][other] <= size for other in fitting)
    with pytest.raises(ConfigError, match=r"needs a desktop of \[1024, 768\]; size is \[640, 480\]"):
        EmuEnv(scale=200)
    assert EmuEnv(scale=[200, 125]).backend.variation.choices["scale"] == (125,)  # type: ignore[attr-defined]
