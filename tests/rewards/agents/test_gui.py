"""Rewards on a GUI agent's step: values, peers' definitions, and their holes, closed."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from images import seen, think

from vlrl.errors import ConfigError
from vlrl.rewards.agents.gui import (
    action_type,
    argument_match,
    click_distance,
    click_in_box,
    gui_r1,
    step_match,
    ui_r1,
)

MEDIA = (seen((10, 10), (10, 10), "unit"), seen((300, 400), (308, 392), "original_pixels"))  # diagonal 500
CLICK = {"action": "click", "gt_bbox": [100, 100, 140, 120]}
TYPE = {"action": "type", "gt_bbox": [-100, -100], "input_text": "headphones"}
SCROLL = {"action": "scroll", "gt_bbox": [50.0, 60.5], "input_text": "DOWN"}
ALL = [action_type, click_in_box, click_distance, argument_match, step_match, gui_r1, ui_r1]
BEST = {ui_r1: 3.0}
FORMAT = {ui_r1: 1.0, gui_r1: 0.2}
"""What any well formed action scores."""


def score(function: Any, said: str, answer: Any, **options: Any) -> float:
    found = function(said, answer, canvases=MEDIA, **options)
    return float(sum(found.values()) if isinstance(found, dict) else found)


@pytest.mark.parametrize("function", ALL)
@pytest.mark.parametrize(
    ("said", "answer"),
    [
        ("[{'action': 'click', 'point': [120, 110], 'input_text': 'no input text'}]", CLICK),
        ('{"action": "left_click", "coordinate": [120.5, 110]}', CLICK),
        ("pyautogui.click(120, 110)", CLICK),
        ("click(start_box='<|box_start|>(120,110)<|box_end|>')", json.dumps(CLICK)),
        ("click(100, 100)", {"action": "click", "bbox": [100, 100, 140, 120]}),  # the edge
        ("click(120, 110)", {"action": "click", "coordinate": [120, 110]}),
        ("{'action': 'click', 'coordinate': [120, 110]}", "{'action': 'click', 'coordinate': [9,9,140,120]}"),
        ("[{'action': 'type', 'point': [-100, -100], 'input_text': 'headphones'}]", TYPE),
        ("type(content='headphones')", TYPE),
        ("scroll(direction='down')", SCROLL),
        ("pyautogui.scroll(-3)", SCROLL),
        ("press_back()", {"action": "press_back"}),
        ("drag([120, 110], end_point=[9, 9])", {"action": "drag", "box": [99, 99, 140, 120], "end": [9, 9]}),
    ],
)  # fmt: skip
def test_the_right_step_scores_in_full(function: Any, said: str, answer: Any) -> None:
    assert score(function, think(said), answer) == pytest.approx(BEST.get(function, 1.0))
    assert score(function, said, answer, part="whole") == pytest.approx(BEST.get(function, 1.0))


@pytest.mark.parametrize("function", ALL)
@pytest.mark.parametrize("answer", [CLICK, TYPE, SCROLL])
@pytest.mark.parametrize(
    "completion",
    [
        "",
        "click(120, 110)",
        think(""),
        think("click"),
        think("I click(120, 110)"),
        think("click(120, 110); type('headphones'); scroll(direction='down')"),
        think("[{'action': 'click', 'point': [120, 110]}, {'action': 'type', 'input_text': 'headphones'}]"),
        think("click(120, 110)") * 2,
        think("<answer>click(120, 110)</answer>"),
        think("[{'action': __import__('os').system('true'), 'point': [120, 110], 'input_text': ''}]"),
        think("[" * 1000),
        "x" * 1_000_000,
    ],
    ids=range(12),
)
def test_what_is_no_action_scores_nothing(function: Any, answer: Any, completion: str) -> None:
    assert score(function, completion, answer) == 0


@pytest.mark.parametrize("function", ALL)
def test_another_type_scores_nothing_but_its_form(function: Any) -> None:
    for said in ("right_click(120, 110)", "wait()", "unheard_of()", "type(content='x')"):
        assert score(function, think(said), CLICK) == pytest.approx(FORMAT.get(function, 0))


def test_places() -> None:
    beside, far = think("click(144, 123)"), think("click(390, 290)")  # 5 pixels off; 5 / 500 of the diagonal
    assert score(click_in_box, beside, CLICK) == score(step_match, beside, CLICK) == 0
    assert score(click_distance, beside, CLICK) == pytest.approx(math.exp(-0.01 / 0.05))
    assert score(click_distance, beside, CLICK, sigma=0.01) == pytest.approx(math.exp(-1))
    assert score(click_distance, far, CLICK) < 0.01
    assert score(click_in_box, think("click()"), CLICK) == score(click_distance, think("click()"), CLICK) == 0
    boxed = think("[{'action': 'click', 'point': [100, 100, 140, 120]}]")  # a box is not a place to click
    assert score(click_in_box, boxed, CLICK) == score(click_distance, boxed, CLICK) == 0
    spot = {"action": "click", "point": [200, 200]}
    assert score(click_in_box, think("click(224, 200)"), spot) == 1  # 24 < 0.05 · 500
    assert score(click_in_box, think("click(225, 200)"), spot) == 0
    assert score(click_in_box, think("click(225, 200)"), spot, radius=0.06) == 1


def test_frames() -> None:
    per_1000 = think("click(300, 360)")  # (120, 108) of 400×300
    assert score(click_in_box, per_1000, CLICK, frame="per_1000") == 1
    assert score(click_in_box, per_1000, CLICK) == 0
    assert score(click_in_box, think("click(0.3, 0.36)"), CLICK, frame="unit") == 1
    shares = {"action": "click", "bbox": [0.25, 1 / 3, 0.35, 0.4]}
    assert score(click_in_box, think("click(120, 110)"), shares, answer_frame="unit") == 1
    # The model sees 392×308; by default the last screenshot is meant.
    assert score(click_in_box, think("click(138, 110)"), CLICK, frame="resized_pixels") == 0
    assert score(click_in_box, think("click(120, 110)"), CLICK, frame="resized_pixels") == 1
    assert (
        score(click_in_box, think("click(0.5, 0.5)"), {"action": "click", "box": [4, 4, 6, 6]}, media_index=0)
        == 1
    )


def test_arguments() -> None:
    said = think("type(content='headphone')")
    assert score(argument_match, said, TYPE) == score(step_match, said, TYPE) == 0
    assert score(argument_match, said, TYPE, measure="similarity") == pytest.approx(0.9)
    assert score(step_match, said, TYPE, min_similarity=0.9) == 1
    assert score(argument_match, think("type(content='Headphones')"), TYPE) == 0
    assert score(argument_match, think("type(content='e')"), TYPE, measure="similarity") == pytest.approx(0.1)
    assert score(argument_match, think("type()"), TYPE, measure="similarity") == 0
    keys = {"action": "key", "keys": ["ctrl", "shift", "t"]}
    assert score(step_match, think("hotkey(key='Ctrl Shift T')"), keys) == 1
    assert score(step_match, think("hotkey(key='ctrl t')"), keys) == 0
    two = {"action": "swipe", "direction": "up", "text": "list"}
    assert score(argument_match, think("swipe(direction='up', text='menu')"), two) == pytest.approx(0.5)


@pytest.mark.parametrize("function", ALL)
@pytest.mark.parametrize(
    "answer",
    [None, "", 7, [], {}, {"action": 7}, "click it", {"action": "click", "gt_bbox": [1, 2, 3]},
     {"action": "click", "gt_bbox": [30, 20, 10, 40]}, {"action": "click", "why": "?"}, [CLICK, TYPE]],
    ids=str,
)  # fmt: skip
def test_a_sample_without_an_action_is_a_failure(function: Any, answer: Any) -> None:
    for completion in ("", think("click(1, 2)")):
        with pytest.raises(ValueError, match="sample"):
            score(function, completion, answer)


@pytest.mark.parametrize("function", [click_in_box, click_distance, step_match, gui_r1, ui_r1])
def test_a_click_that_is_nowhere_or_off_the_screen_is_a_failure(function: Any) -> None:
    for answer in ({"action": "click"}, {"action": "click", "gt_bbox": [900, 900, 999, 999]}):
        with pytest.raises(ValueError, match="sample"):
            score(function, think("wait()"), answer)


@pytest.mark.parametrize(
    ("function", "options"),
    [
        (click_in_box, {"radius": 0}),
        (click_distance, {"sigma": -1}),
        (argument_match, {"measure": "near"}),
        (step_match, {"min_similarity": 0}),
        (gui_r1, {"frame": "pixels"}),
        (ui_r1, {"part": "tail"}),
    ],
)
def test_an_option_out_of_range_is_refused(function: Any, options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        score(function, think("wait()"), CLICK, **options)


# GUI-R1's and UI-R1's definitions, from their descriptions, on actions written as they ask for them.

ACTIONS = ["click", "type", "scroll", "complete", "press_back", "open_app"]
TEXTS = ["up", "down", "new york", "york hotel", "new york hotel map", "no input text"]
SAID = st.fixed_dictionaries(
    {
        "action": st.sampled_from(ACTIONS),
        "point": st.tuples(st.integers(0, 399), st.integers(0, 299)).map(list),
        "input_text": st.sampled_from(TEXTS),
    }
)
BOXES = st.builds(
    lambda x, y, w, h: [x, y, x + w, y + h], *[st.integers(1, 100)] * 2, *[st.integers(9, 190)] * 2
)
TRUE = st.fixed_dictionaries(
    {
        "action": st.sampled_from(ACTIONS),
        "gt_bbox": BOXES | BOXES.map(lambda b: b[:2]),
        "input_text": st.sampled_from(TEXTS),
    }
)


def f1(said: str, true: str) -> float:
    a, b = set(said.lower().split()), set(true.lower().split())
    return 2 * len(a & b) / (len(a) + len(b)) if a | b else 0.0


def gui_r1_described(said: dict[str, Any], true: dict[str, Any], radius: float) -> tuple[float, float]:
    (x, y), box, text = said["point"], true["gt_bbox"], said["input_text"]
    if said["action"] != true["action"]:
        accuracy = 0.0
    elif said["action"] == "click" and len(box) == 4:
        accuracy = float(box[0] < x < box[2] and box[1] < y < box[3])
    elif said["action"] == "click":
        accuracy = float(math.dist((x, y), box) < radius)
    elif said["action"] in ("type", "scroll"):
        accuracy = float(f1(text, true["input_text"]) >= 0.5)
    else:
        accuracy = 1.0
    form = not (said["action"] in ("type", "open_app") and text == "no input text")
    form = form and not (said["action"] == "scroll" and text not in ("left", "right", "up", "down"))
    return accuracy, float(form)


def on_the_edge(said: dict[str, Any], box: list[int]) -> bool:
    return len(box) == 4 and (said["point"][0] in box[::2] or said["point"][1] in box[1::2])


@given(SAID, TRUE)
def test_gui_r1_is_as_described_where_its_holes_are_not(said: dict[str, Any], true: dict[str, Any]) -> None:
    accuracy, form = gui_r1_described(said, true, 140)
    found = gui_r1(think(str([said])), true, canvases=MEDIA, radius=140 / 500)
    assert found["gui_r1_format"] == pytest.approx(0.2 * form)
    differs = (
        on_the_edge(said, true["gt_bbox"])  # inside, here
        or (true["action"] != "type" and said["input_text"] != true["input_text"])  # compared, here
        or "no input text" in (said["input_text"], true["input_text"])  # is not text, here
    )
    if not differs:
        assert found["gui_r1_accuracy"] == pytest.approx(0.8 * accuracy)


@given(SAID.filter(lambda said: said["action"] == "click"), TRUE)
def test_clicks_are_gui_r1_s(said: dict[str, Any], true: dict[str, Any]) -> None:
    true = {**true, "action": "click", "input_text": "no input text"}
    accuracy, _ = gui_r1_described(said, true, 140)
    found = gui_r1(think(str([said])), true, canvases=MEDIA, radius=140 / 500)["gui_r1_accuracy"]
    if not on_the_edge(said, true["gt_bbox"]):
        assert found == pytest.approx(0.8 * accuracy)


@pytest.mark.parametrize("said", TEXTS[2:5])
@pytest.mark.parametrize("true", TEXTS[2:5])
def test_typed_words_are_gui_r1_s(said: str, true: str) -> None:
    answer = {"action": "type", "gt_bbox": [-100, -100], "input_text": true}
    found = gui_r1(
        think(f"[{{'action': 'type', 'point': [0, 0], 'input_text': {said!r}}}]"), answer, canvases=MEDIA
    )
    assert found["gui_r1_accuracy"] == pytest.approx(0.8 * (f1(said, true) >= 0.5))


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        ("{'action': 'type', 'point': [0, 0], 'input_text': 'e'}", TYPE),  # one word within the other
        ("{'action': 'type', 'point': [0, 0], 'input_text': 'headphones a b c d e'}", TYPE),
        ("{'action': 'type', 'point': [0, 0], 'input_text': '" + "headphones " * 50 + "'}", TYPE),
        (
            "{'action': 'open_app', 'point': [0, 0], 'input_text': 'Maps'}",
            {"action": "open_app", "text": "Mail"},
        ),
        ("{'action': 'click', 'point': [0, 0], 'input_text': ''}", CLICK),  # 120 pixels away
        ("{'action': 'scroll', 'point': [0, 0], 'input_text': 'up down left right'}", SCROLL),
    ],
)
def test_gui_r1_s_holes_are_closed(said: str, answer: Any) -> None:
    assert gui_r1(think(f"[{said}]"), answer, canvases=MEDIA)["gui_r1_accuracy"] == 0


@given(SAID, TRUE.map(lambda true: {**true, "input_text": ""}).filter(lambda true: len(true["gt_bbox"]) == 4))
def test_ui_r1_is_as_described(said: dict[str, Any], true: dict[str, Any]) -> None:
    """Three terms: the type; the type and, of a click, the point within the closed box; the tags."""
    x0, y0, x1, y1 = true["gt_bbox"]
    same = said["action"] == true["action"]
    inside = x0 <= said["point"][0] <= x1 and y0 <= said["point"][1] <= y1
    text = think(str([{"action": said["action"], "coordinate": said["point"]}]))
    assert re.fullmatch(r"<think>.*?</think>\s*<answer>.*?</answer>", text, re.DOTALL)
    assert ui_r1(text, true, canvases=MEDIA) == {
        "ui_r1_action": float(same),
        "ui_r1_coordinate": float(same and (inside or said["action"] != "click")),
        "ui_r1_format": 1.0,
    }


@given(SAID, TRUE)
def test_every_score_lies_in_its_range(said: dict[str, Any], true: dict[str, Any]) -> None:
    for function in ALL:
        assert 0 <= score(function, think(str([said])), true) <= BEST.get(function, 1) + 1e-12
