"""Every task can be done on the least screen in large letters, and on the largest screen in small ones."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle, product
from typing import Any

import pytest
from oracle_plays import failures

from vlrl.envs.gui.emu.env import MOST
from vlrl.envs.gui.emu.task import TEMPLATES
from vlrl.envs.gui.emu.variation import CHOICES, LEAST
from vlrl.envs.gui.screen import Form

ROOM = ("font", "language", "bar_side")
"""The looks that say how much room things need and have: all combinations; the others take turns."""
TURNS = [key for key in CHOICES if key not in (*ROOM, "font_size", "scale")]


def all_looks(form: Form) -> Iterator[dict[str, Any]]:
    """Every font with every language and side of the task bar; the values of the rest by turns."""
    turns = {key: cycle(CHOICES[key]) for key in TURNS}
    for values in product(*(CHOICES[key] for key in ROOM)):
        looks = dict(zip(ROOM, values, strict=True)) | {key: next(turn) for key, turn in turns.items()}
        if form == "desktop" or looks["bar_side"] == CHOICES["bar_side"][0]:  # a phone has no such bar
            yield looks


@pytest.mark.parametrize("bar_side", CHOICES["bar_side"])
def test_the_list_of_letters_keeps_its_height_in_the_largest_letters(bar_side: str) -> None:
    """The one that failed: the letter that is read took the list's whole height."""
    looks = {"scale": 125, "font_size": 14, "font": "roman", "bar_side": bar_side}
    assert failures("desktop", ["mail/star", "mail/tidy"], 0, **looks) == []


def test_four_buttons_of_a_message_can_be_touched_on_the_narrowest_phone() -> None:
    """The one that failed: they stood in one row, the last two beyond the screen's edge."""
    looks = {"scale": 125, "font_size": 14, "font": "roman", "size": LEAST["mobile"][125]}
    assert not [f for seed in range(12) for f in failures("mobile", ["basics/click_button"], seed, **looks)]


def test_two_rows_of_a_list_are_seen_at_once_where_one_is_dragged_onto_the_other() -> None:
    """The one that failed: a bar of 47 pixels left the list too few rows."""
    looks = {"scale": 125, "font_size": 14, "font": "roman", "language": "de", "windows": "one"}
    assert failures("desktop", ["files/drag"], 27, widgets="fluent", **looks) == []


@pytest.mark.parametrize("scale", [150, 175, 200])
@pytest.mark.parametrize("form", ["desktop", "mobile"])
def test_the_highest_dialog_fits_the_least_screen_of_a_scale(form: Form, scale: int) -> None:
    looks = {"font_size": 14, "font": "roman", "language": "de", "size": LEAST[form][scale]}
    for family in CHOICES["widgets"]:
        assert failures(form, ["clock/add_alarm"], 1, scale=scale, widgets=family, **looks) == []


@pytest.mark.slow(together=True)
@pytest.mark.parametrize("scale", [150, 175, 200])
@pytest.mark.parametrize("family", CHOICES["widgets"])
def test_every_task_on_the_least_screen_of_a_scale(family: str, scale: int) -> None:
    failed: list[str] = []
    for form in ("desktop", "mobile"):
        names = [name for name, template in sorted(TEMPLATES.items()) if form in template.forms]
        looks = {"font_size": 14, "font": "roman", "language": "de", "size": LEAST[form][scale]}
        failed += failures(form, names, scale, scale=scale, widgets=family, **looks)
    assert not failed, "\n".join(failed)


@pytest.mark.slow(together=True)
@pytest.mark.parametrize("language", CHOICES["language"])
@pytest.mark.parametrize("font", CHOICES["font"])
@pytest.mark.parametrize("form", ["desktop", "mobile"])
def test_every_task_in_every_look_on_the_least_screen(form: Form, font: str, language: str) -> None:
    names = [name for name, template in sorted(TEMPLATES.items()) if form in template.forms]
    failed: list[str] = []
    for seed, looks in enumerate(all_looks(form)):
        if (looks["font"], looks["language"]) == (font, language):
            failed += failures(form, names, seed, size=LEAST[form][125], scale=125, font_size=14, **looks)
    assert not failed, "\n".join(failed)


@pytest.mark.slow(together=True)
@pytest.mark.parametrize("share", range(8))
@pytest.mark.parametrize("form", ["desktop", "mobile"])
def test_every_task_on_the_largest_screen_in_the_smallest_letters(form: Form, share: int) -> None:
    """One look a task: what needs no room in the least screen needs none here, but scrolls are longer."""
    names = [name for name, template in sorted(TEMPLATES.items()) if form in template.forms]
    failed: list[str] = []
    for seed, name in enumerate(names):
        looks = {"bar_side": CHOICES["bar_side"][seed % 3], "font": CHOICES["font"][seed // 3 % 3]}
        if seed % 8 == share:
            failed += failures(form, [name], seed, size=MOST, scale=100, font_size=12, **looks)
    assert not failed, "\n".join(failed)
