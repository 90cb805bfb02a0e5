"""Rewards read by a codec: a click in its box, in every grammar and at every scale, and nothing else."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest
from codec_samples import SAMPLES

from vlrl.config import load_config
from vlrl.coordinates import Canvas, frame_extent
from vlrl.envs.gui.actions import Action, Click, Drag, Finish, Key, Move, Scroll, Swipe, TypeText, Wait
from vlrl.envs.gui.codecs.codec import ActionError, View
from vlrl.envs.gui.codecs.open import CODECS, open_codec
from vlrl.errors import ConfigError
from vlrl.registry import resolve
from vlrl.rewards.agents.gui import action_type, argument_match, click_distance, click_in_box, step_match
from vlrl.scoring.functions import find_reward
from vlrl.seeds import derive_seed

SCREENS = [
    Canvas((480, 640), (476, 644), "resized_pixels"),
    Canvas((1080, 1920), (364, 644), "per_1000"),  # a third
    Canvas((210, 160), (336, 252), "unit"),  # enlarged
    Canvas((2160, 3840), (2156, 3836), ""),
    Canvas((915, 412), (915, 412), "per_1000"),
]
OTHER = Canvas((30, 50), (28, 56), "unit")
"""An earlier screenshot; the last one is meant."""
SPOIL = ["", "9", "-", "\0", "'", '"', "]", "\n", "é", "e9"]
ROOT_CONFIG = "configs/gui_grounding.yaml"


def box_of(canvas: Canvas) -> list[int]:
    """A box of a tenth of each side: wide enough for every frame's grain."""
    height, width = canvas.original_size
    return [width * 3 // 10, height * 6 // 10, width * 4 // 10, height * 7 // 10]


def middle_of(box: list[int]) -> tuple[int, int]:
    return (box[0] + box[2]) // 2, (box[1] + box[3]) // 2


def written(name: str, action: Action, canvas: Canvas) -> str:
    return open_codec(name).format(action, View(canvas, (0, 0)))


def score(name: str, text: str, answer: Any, canvas: Canvas, **options: Any) -> float:
    return float(click_in_box(text, answer, canvases=(OTHER, canvas), codec=name, **options))


def near(name: str, text: str, answer: Any, canvas: Canvas, **options: Any) -> float:
    return float(click_distance(text, answer, canvases=(OTHER, canvas), codec=name, **options))


@pytest.mark.parametrize("canvas", SCREENS, ids=str)
@pytest.mark.parametrize("name", CODECS)
def test_a_click_is_paid_in_its_box_and_nowhere_else(name: str, canvas: Canvas) -> None:
    box, (height, width) = box_of(canvas), canvas.original_size
    answer = {"action": "click", "bbox": box}
    x, y = middle_of(box)
    text = written(name, Click((x, y)), canvas)
    assert score(name, text, answer, canvas) == 1
    assert near(name, text, answer, canvas) == 1
    assert score(name, f"<think>It is there.</think>\n{text}", answer, canvas) == 1
    wide, high = width // 10, height // 10
    for away in ((x - wide, y), (x + wide, y), (x, y - high), (x, y + high), (0, 0), (width - 1, height - 1)):
        beside = written(name, Click(away), canvas)
        assert score(name, beside, answer, canvas) == 0
        assert 0 < near(name, beside, answer, canvas) < 1 or math.dist(away, (x, y)) > width / 2
    point = {"action": "click", "point": [x, y]}
    assert score(name, text, point, canvas) == 1
    assert score(name, written(name, Click((0, 0)), canvas), point, canvas) == 0


@pytest.mark.parametrize("name", CODECS)
def test_another_type_is_paid_nothing_at_the_same_place(name: str) -> None:
    canvas = SCREENS[0]
    box = box_of(canvas)
    place, answer = middle_of(box), {"action": "click", "bbox": box}
    others: list[Action] = [
        Click(place, "right"),
        Click(place, count=2),
        Click(place, modifiers=("ctrl",)),
        Click(None),
        Move(place),
        Drag((place, place)),
        Swipe(place, place),
        *(action for action in SAMPLES if not isinstance(action, Click)),
    ]
    said = 0
    for action in others:
        try:
            text = written(name, action, canvas)
        except ActionError:  # a grammar without the word
            continue
        said += 1
        assert score(name, text, answer, canvas) == 0, text
        assert near(name, text, answer, canvas) == 0, text
    assert said >= 3


@pytest.mark.parametrize(
    ("action", "answer"),
    [
        (Click((200, 300), "right"), {"action": "right_click", "bbox": [192, 288, 256, 336]}),
        (Click((200, 300), count=2), {"action": "double_click", "bbox": [192, 288, 256, 336]}),
        (Drag(((200, 300), (10, 20))), {"action": "drag", "bbox": [192, 288, 256, 336], "end": [10, 20]}),
        (TypeText("cats"), {"action": "type", "input_text": "cats"}),
        (Key(("ctrl", "s")), {"action": "key", "keys": "ctrl s"}),
        (Wait(), {"action": "wait"}),
        (Finish(), {"action": "complete"}),
    ],
    ids=str,
)
def test_the_answers_type_need_not_be_a_click(action: Action, answer: Any) -> None:
    text = written("plain", action, SCREENS[0])
    assert score("plain", text, answer, SCREENS[0]) == 1
    assert score("plain", text, {"action": "click", "bbox": [192, 288, 256, 336]}, SCREENS[0]) == 0


def test_a_drag_from_where_the_pointer_is_has_no_start_that_could_be_compared() -> None:
    answer = {"action": "drag", "point": [0, 0], "end": [100, 100]}
    assert score("osworld_pyautogui", "```python\npyautogui.dragTo(100, 100)\n```", answer, SCREENS[0]) == 0
    assert score("plain", "<action>drag 0 0 100 100</action>", answer, SCREENS[0]) == 1


@pytest.mark.parametrize("name", [name for name in CODECS if name.startswith("qwen")])
@pytest.mark.parametrize("canvas", SCREENS, ids=str)
def test_places_are_those_of_click_in_box_where_both_read_the_text(name: str, canvas: Canvas) -> None:
    """Places agree to a 1024th of a pixel: a codec's pixel is not told from the place it was made of."""
    frame: Any = CODECS[name].frame
    rng = random.Random(derive_seed(name, canvas.size))
    box = box_of(canvas)
    answer = {"action": "click", "bbox": box}
    (width, height), (high, wide) = frame_extent(frame, canvas), canvas.original_size
    tool, click = ("mobile_use", "click") if "mobile" in name else ("computer_use", "left_click")
    places = [(x / wide * width, y / high * height) for x in (box[0], box[2]) for y in (box[1], box[3])]
    places += [(rng.randrange(int(width)), rng.randrange(int(height))) for _ in range(200)]
    for x, y in places:
        call = f'{{"name": "{tool}", "arguments": {{"action": "{click}", "coordinate": [{x}, {y}]}}}}'
        text = f"<tool_call>\n{call}\n</tool_call>"
        canvases = (OTHER, canvas)
        far: Any = click_distance(text, answer, canvases=canvases, frame=frame, part="whole")
        assert near(name, text, answer, canvas) == pytest.approx(far, abs=1e-3)
        if (x, y) not in places[:4]:  # a corner is a place that no float need hit
            exact: Any = click_in_box(text, answer, canvases=canvases, frame=frame, part="whole")
            assert score(name, text, answer, canvas) == exact


def test_the_edge_belongs_to_the_box() -> None:
    answer = {"action": "click", "bbox": [100, 100, 140, 120]}
    texts = {
        "100 100": 1,
        "140 120": 1,
        "140.5 110": 0,
        "141 110": 0,
        "99 110": 0,
        "99.9 110": 0,
        "120 121": 0,
    }
    for place, paid in texts.items():
        text = f"<action>click {place}</action>"
        assert score("plain@original_pixels", text, answer, SCREENS[0]) == paid, place


def test_answers_may_be_in_another_frame_and_on_another_image() -> None:
    share = {"action": "click", "bbox": [0.4, 0.4, 0.6, 0.6]}
    assert score("plain@unit", "<action>click 0.5 0.5</action>", share, OTHER, answer_frame="unit") == 1
    early = {"action": "click", "bbox": [20, 10, 30, 20]}
    assert score("plain", "<action>click 28 14</action>", early, SCREENS[0], media_index=0) == 1


@pytest.mark.parametrize("name", CODECS)
def test_spoilt_text_is_paid_nothing_and_raises_nothing(name: str) -> None:
    """Characters taken out, doubled, changed and moved: what is left of a click may be one, most is none."""
    canvas, rng = SCREENS[0], random.Random(derive_seed("spoilt", name))
    box = box_of(canvas)
    answer = {"action": "click", "bbox": box}
    texts = [written(name, Click(middle_of(box)), canvas)]
    texts += [written(name, action, canvas) for action in (TypeText("it's"), Wait())]
    paid = 0
    for number in range(400):
        text = list(texts[number % len(texts)])
        for _ in range(rng.randint(1, 12)):
            at = rng.randrange(len(text) + 1)
            text[at : at + rng.randint(0, 3)] = rng.choice(
                ["", "9", "-", "\0", "'", '"', "]", "\n", "é", "e9"]
            )
        found = score(name, "".join(text), answer, canvas)
        assert found in (0, 1)
        assert 0 <= near(name, "".join(text), answer, canvas) <= 1
        paid += found == 1
    assert paid < 100
    for text in ("", " ", "x" * 100_000, "[" * 50_000, "\ud800", "None", texts[0] * 2, texts[0] + texts[1]):
        assert score(name, text, answer, canvas) == 0  # type: ignore[arg-type]


@pytest.mark.parametrize("options", [{"frame": "unit"}, {"part": "whole"}])
def test_a_codec_has_its_own_part_and_frame(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="NAME@FRAME"):
        score("plain", "", {"action": "wait"}, SCREENS[0], **options)
    with pytest.raises(ConfigError, match="tolerance='lenient' has no effect"):
        score("any", "", {"action": "wait"}, SCREENS[0], tolerance="lenient")


@pytest.mark.parametrize("name", ["click_in_box", "click_distance"])
def test_the_old_names_are_refused_with_the_new_one(name: str) -> None:
    with pytest.raises(ConfigError, match=f"it is now {name} with the option codec"):
        resolve("rewards", f"codec_{name}")


@pytest.mark.parametrize("name", ["plain", "qwen3_computer_use", "osworld_pyautogui"])
def test_every_reward_on_steps_reads_by_a_codec(name: str) -> None:
    steps: list[tuple[Action, Any]] = [
        (TypeText("cats"), {"action": "type", "input_text": "cats"}),
        (Key(("ctrl", "s")), {"action": "key", "keys": ["ctrl", "s"]}),
        (Scroll(0, 300), {"action": "scroll", "direction": "down"}),
    ]
    for action, answer in steps:
        for function in (action_type, argument_match, step_match):
            given: Any = {"canvases": (SCREENS[0],), "codec": name}
            assert function(written(name, action, SCREENS[0]), answer, **given) == 1
            assert function(written(name, Wait(), SCREENS[0]), answer, **given) == 0


def test_what_is_wrong_with_a_sample_or_the_config_is_said() -> None:
    text = "<action>click 1 1</action>"
    for answer in (None, {"action": "click"}, {"action": "click", "bbox": [900, 900, 999, 999]}):
        with pytest.raises(ValueError, match="sample"):
            score("plain", text, answer, SCREENS[0])
    with pytest.raises(ConfigError, match="did you mean 'uitars'"):
        score("uitar", text, {"action": "click", "point": [1, 1]}, SCREENS[0])
    with pytest.raises(ConfigError, match="sigma"):
        near("plain", text, {"action": "click", "point": [1, 1]}, SCREENS[0], sigma=0)


@pytest.mark.parametrize("name", CODECS)
def test_the_grounding_config_pays_the_target_of_any_codec(name: str, pytestconfig: pytest.Config) -> None:
    """The row names its codec, so that the config's reward needs no option of its own."""
    config = load_config(pytestconfig.rootpath / ROOT_CONFIG)
    (term,), (source,) = config.rewards, config.data.train
    wants = find_reward(term.name, term.options).wants
    rows = resolve("datasets", source.name)(**{**source.options, "codec": name, "num_rows": 2})
    for row in (rows[0], rows[1]):
        context = {key: value for key, value in row["metadata"].items() if wants(key)}
        given = {**context, **term.options, "canvases": [SCREENS[0]]}
        function: Any = resolve("rewards", term.name)
        assert function(row["target"], row["answer"], **given) == 1
        assert function("I click it.", row["answer"], **given) == 0
