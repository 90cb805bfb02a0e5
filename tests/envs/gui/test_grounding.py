"""The dataset gui_grounding: a row's target is right, its words name one widget, splits never meet."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from vlrl.coordinates import Canvas
from vlrl.envs.gui.codecs.open import CODECS
from vlrl.envs.gui.grounding import GuiGrounding, nameable
from vlrl.envs.gui.screen import Element
from vlrl.errors import ConfigError
from vlrl.rewards.agents.gui import click_in_box

SIZE = (640, 480)


def scored(row: dict[str, Any], text: str) -> float:
    canvas = Canvas((480, 640), (476, 644))
    return float(
        click_in_box(text, row["answer"], canvases=[canvas], frame="resized_pixels", part="whole")  # type: ignore[arg-type]
    )


def test_the_target_is_paid_and_a_click_elsewhere_is_not() -> None:
    rows: list[Any] = [GuiGrounding(shown_size=[644, 476], num_rows=8)[i] for i in range(8)]
    assert [scored(row, row["target"]) for row in rows] == [1.0] * 8
    away = rows[0]["target"].replace('"coordinate": [', '"coordinate": [640, 470], "x": [')
    assert scored(rows[0], away) == 0.0


@pytest.mark.parametrize("codec", ["qwen2_5_mobile_use", "qwen3_computer_use", "qwen3_mobile_use"])
def test_the_targets_of_qwens_codecs_are_read(codec: str) -> None:
    row: Any = GuiGrounding(codec=codec, num_rows=1)[0]
    frame: Any = CODECS[codec].frame
    canvases = [Canvas(SIZE[::-1], SIZE[::-1])]
    assert click_in_box(row["target"], row["answer"], canvases=canvases, frame=frame, part="whole") == 1.0


def test_a_row_is_the_same_again() -> None:
    first, again = (GuiGrounding(num_rows=4, options={"form": "mobile"}, seed=3)[2] for _ in range(2))
    image, same = (row["messages"][1]["content"].pop(0)["image"] for row in (first, again))
    assert np.array_equal(image, same)
    assert first == again


def test_splits_share_no_seed() -> None:
    train, heldout = GuiGrounding(num_rows=50), GuiGrounding(num_rows=50, split="heldout")
    assert {train.screen_seed(i) % 2 for i in range(50)} == {0}
    assert {heldout.screen_seed(i) % 2 for i in range(50)} == {1}


def button(name: str, box: tuple[int, int, int, int], role: str = "button", *states: str) -> Element:
    return Element(role, name, box, "", frozenset(states))


def named(*elements: Element) -> list[tuple[str, bool]]:
    return [(f"{e.role} {e.name}", by_name) for e, by_name in nameable(elements, SIZE)]


@pytest.mark.parametrize(
    "hidden",
    [
        button("Open", (0, 0, 50, 20), "button", "covered"),
        button("Open", (0, 0, 50, 20), "button", "clipped"),
        button("Open", (0, 0, 50, 20), "button", "disabled"),
        button("Open", (600, 0, 650, 20)),
        button("Open", (0, 0, 4, 20)),
        button("", (0, 0, 50, 20)),
        button("☰", (0, 0, 50, 20)),
        button("Open", (0, 0, 50, 20), "window"),
    ],
)
def test_what_cannot_be_named_or_seen_whole_is_left_out(hidden: Element) -> None:
    assert named(button("Save", (100, 100, 150, 120)), hidden) == [("button Save", True)]


def test_of_two_of_a_name_the_role_tells_or_nothing_does() -> None:
    save, tab = button("Save", (0, 0, 50, 20)), button("save", (0, 40, 50, 60), "tab")
    assert named(save, tab) == [("button Save", False), ("tab save", False)]
    assert named(save, tab, button("Save", (0, 80, 50, 99))) == [("tab save", False)]


def test_a_window_over_a_corner_is_seen() -> None:
    assert named(button("Save", (0, 0, 50, 20)), button("Files", (40, 10, 300, 300), "window")) == []


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"env": "visual/mazes"}, "does not take the options"),
        ({"split": "test"}, "split"),
        ({"num_rows": 0}, "num_rows"),
        ({"codec": "qwen"}, "codec"),
    ],
)
def test_wrong_options(options: dict[str, Any], word: str) -> None:
    with pytest.raises(ConfigError, match=word):
        GuiGrounding(**options)
