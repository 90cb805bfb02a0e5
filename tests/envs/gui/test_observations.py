"""What a GUI environment shows: numbers on a screenshot, the accessibility tree, both; acts by number."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from vlrl.envs.gui.actions import Click, Drag
from vlrl.envs.gui.codecs.codec import ActionError
from vlrl.envs.gui.codecs.open import open_codec
from vlrl.envs.gui.emu.env import EmuEnv
from vlrl.envs.gui.env import GuiEnv
from vlrl.envs.gui.hits import element_at
from vlrl.envs.gui.marks import MAX_LINES, ScreenMark, mark_at, marks_of, tree_text, with_marks
from vlrl.envs.gui.screen import Element
from vlrl.errors import ConfigError

TASKS = ["basics/click_button", "editor/*", "forms/*", "settings/*"]


def elements(env: GuiEnv) -> list[Element]:
    backend: Any = env.backend
    return list(backend.elements())


@pytest.mark.parametrize(("form", "codec"), [("desktop", "plain"), ("mobile", "androidworld")])
def test_a_click_on_a_number_meets_the_widget_that_has_it(form: Any, codec: str) -> None:
    for seed in range(8):
        env = EmuEnv(form=form, tasks="*", codec=codec, observe="marks")
        env.reset({}, seed)
        assert env.view.marks
        shown = elements(env)
        for number, (element, mark) in enumerate(marks_of(shown, env.backend.size), 1):
            said = (
                f"<action>click [{number}]</action>"
                if codec == "plain"
                else f'{{"action_type": "click", "index": {number}}}'
            )
            assert env.codec.parse(said, env.view) == Click(mark.point)
            met = element_at(shown, mark.point)
            assert met is not None and (
                met is element or met.box == element.box or _lies_in(met.box, element.box)
            )


def _lies_in(inner: tuple[int, ...], outer: tuple[int, ...]) -> bool:
    return inner[0] >= outer[0] and inner[1] >= outer[1] and inner[2] <= outer[2] and inner[3] <= outer[3]


@pytest.mark.parametrize("observe", ["marks", "tree", "both"])
@pytest.mark.parametrize("seed", [0, 1, 2, 3])
def test_an_oracle_that_names_numbers_succeeds(observe: str, seed: int) -> None:
    env = EmuEnv(tasks=TASKS, observe=observe)
    env.reset({}, seed)
    said, over = [], False
    while not over:
        said.append(env.oracle())
        result = env.step(said[-1])
        assert not result.truncated and not result.info["invalid"], said
        over = result.terminated
    assert result.info["success"]
    assert any(re.search(r"click \[[0-9]+\]", action) for action in said), said


def test_numbers_are_drawn_at_their_widgets_and_nothing_else_changes() -> None:
    plain, marked = (EmuEnv(tasks="basics/*", observe=observe) for observe in ("screenshot", "marks"))
    before, after = plain.reset({}, 3).images[0], marked.reset({}, 3).images[0]
    changed = np.argwhere((before != after).any(axis=2))
    boxes = [mark.box for mark in marked.view.marks]
    assert len(changed) and not np.array_equal(before, after)
    near = np.zeros(before.shape[:2], bool)
    for x0, y0, x1, y1 in boxes:
        near[max(0, y0 - 20) : y1 + 20, x0 : x1 + 40] = True
    assert near[changed[:, 0], changed[:, 1]].all()
    assert marked.reset({}, 3).images[0].tobytes() == after.tobytes()


def test_a_tree_has_the_words_of_the_screen_and_no_image() -> None:
    env = EmuEnv(tasks="basics/*", observe="tree")
    shown = env.reset({}, 3)
    assert not shown.images and shown.text.startswith("Task: ") and "\n\nThe screen:\n" in shown.text
    numbers = [int(found) for found in re.findall(r"^\[([0-9]+)\]", shown.text, re.MULTILINE)]
    assert numbers == list(range(1, len(env.view.marks) + 1))
    assert "Widgets have numbers" in env.system_prompt
    with_places = EmuEnv(tasks="basics/*", observe="both", codec="osworld_pyautogui").reset({}, 3)
    assert len(with_places.images) == 1
    x, y = env.view.marks[0].point
    assert f" at {x}, {y}\n" in with_places.text and "[1]" not in with_places.text


def test_an_episode_goes_on_from_a_snapshot_with_its_numbers() -> None:
    env = EmuEnv(tasks="basics/*", observe="marks")
    env.reset({}, 3)
    kept, marks = env.snapshot(), list(env.view.marks)
    env.step(env.oracle())
    env.restore(kept)
    assert list(env.view.marks) == marks


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("<action>click [0]</action>", "there is no mark 0"),
        ("<action>click [9999]</action>", "there is no mark 9999; the screen has 1 to"),
        ("<action>click [1] 3</action>", "click takes x y"),
        ("<action>scroll [1]</action>", "scroll needs dx"),
        ("<action>wait [1]</action>", "wait takes ms"),
    ],
)
def test_a_number_that_is_not_there_is_no_action(said: str, reason: str) -> None:
    env = EmuEnv(tasks="basics/*", observe="marks")
    env.reset({}, 3)
    result = env.step(said)
    assert result.info["invalid"] and reason in result.observation.text


def test_a_screenshot_has_no_numbers() -> None:
    env = EmuEnv(tasks="basics/*")
    env.reset({}, 3)
    assert "the screen shows none" in env.step("<action>click [1]</action>").observation.text
    codec = open_codec("androidworld")
    for said in ('{"action_type": "click", "index": 1}', '{"action_type": "click", "index": true}'):
        with pytest.raises(ActionError, match="there is no mark"):
            codec.parse(said, env.view)
    with pytest.raises(ActionError, match="stands beside x and y"):
        codec.parse('{"action_type": "click", "index": 1, "x": 1, "y": 2}', env.view)


def test_the_smallest_widget_is_named_and_only_where_it_comes_to_the_same() -> None:
    outer, inner = ScreenMark((50, 50), (0, 0, 100, 100), True), ScreenMark((20, 20), (10, 10, 30, 30), True)
    slider = ScreenMark((50, 90), (0, 80, 100, 100), False)
    assert mark_at([outer, inner], (12, 29)) == 2 and mark_at([outer, inner], (40, 40)) == 1
    assert mark_at([slider], (50, 90)) == 1 and mark_at([slider], (51, 90)) is None


def test_a_drag_may_go_from_number_to_number() -> None:
    env = EmuEnv(tasks="basics/*", observe="marks")
    env.reset({}, 3)
    first, second = env.view.marks[0].point, env.view.marks[1].point
    assert env.codec.parse("<action>drag [1] [2]</action>", env.view) == Drag((first, second))


def test_a_long_tree_says_how_much_is_left_out() -> None:
    many = [Element("text", f"line {i} " + "x" * 300, (0, 0, 9, 9)) for i in range(MAX_LINES + 7)]
    lines = tree_text(many, []).splitlines()
    assert len(lines) == MAX_LINES + 1 and lines[-1] == "(7 more)" and lines[0].endswith(' …"')


def test_a_number_at_the_edge_of_a_screen_is_drawn() -> None:
    pixels = np.zeros((40, 60, 3), np.uint8)
    for box in ((0, 0, 5, 5), (55, 0, 60, 5), (0, 35, 5, 40), (55, 35, 60, 40)):
        drawn = with_marks(pixels, [ScreenMark((box[0], box[1]), box, True)] * 120)
        assert drawn.shape == pixels.shape and (drawn == 255).any()


def test_what_cannot_be_shown_is_refused() -> None:
    with pytest.raises(ConfigError, match="observe='boxes'; screenshot, marks, tree, both"):
        EmuEnv(observe="boxes")
    with pytest.raises(ConfigError, match="'gui_r1' cannot name a number"):
        EmuEnv(observe="marks", codec="gui_r1", tasks="basics/*")
