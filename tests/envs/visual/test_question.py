"""Questions and answers: what is read, how it is graded, in which numbers boxes are written."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlrl.environment.open import open_env
from vlrl.envs.visual.answers import Choice, Number, yes_or_no
from vlrl.envs.visual.boxes import AnswerGrid, LabelledBoxes, OneBox
from vlrl.envs.visual.question import last_answer
from vlrl.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("<answer>3</answer>", "3"),
        ("so it is <answer> 3 </answer>\n", "3"),
        ("<answer>2</answer> no, <answer>3</answer>", "3"),
        ("<think><answer>2</answer></think><answer>3</answer>", "3"),
        ("<answer>3</answer>.", None),
        ("<answer>3", None),
        ("3</answer>", None),
        ("<answer> </answer>", None),
        ("<answer><think>3</think></answer>", None),
        ("<answer>3</answer></answer>", None),
        ("3", None),
    ],
)
def test_the_last_answer_is_read_strictly(text: str, said: str | None) -> None:
    assert last_answer(text) == said


@given(st.text(max_size=200))
def test_any_text_is_read_or_none(text: str) -> None:
    said = last_answer(text)
    assert said is None or (said == said.strip() and said in text)


@given(st.text(max_size=60), st.integers(0, 2**32))
def test_any_answer_is_graded(text: str, seed: int) -> None:
    grid = AnswerGrid(224)
    answers: list[Any] = [
        *(Number(3, 0, 9), Choice("red", ("red", "blue")), OneBox([1, 2, 30, 40], grid)),
        LabelledBoxes([("cube", [1, 2, 30, 40])], ["cube"], 3, grid),
    ]
    for answer in answers:
        for said in (text, answer.guess(np.random.default_rng(seed))):
            score = answer.grade(said)
            assert score is None or 0 <= score <= 1
        assert answer.grade(answer.text) == 1


def test_numbers_are_graded_within_their_tolerance() -> None:
    number = Number(2.5, 0, 10, absolute=0.1, grain=0.5, unit="degree")
    said = ("2.5", "2.6", "2.7", "2.5°", "two", "2 or 3")
    assert [number.grade(text) for text in said] == [1, 1, 0, 1, None, None]
    assert Number(-4, -9, 9).text == "-4"


def test_words_are_graded_among_their_choices() -> None:
    choice = Choice("red", ("red", "blue"))
    assert [choice.grade(text) for text in ("red", " Red.", "the red", "blue", "green", "red blue")] == [
        *(1, 1, 1, 0, None, None)
    ]
    assert yes_or_no(True).text == "yes"
    with pytest.raises(ValueError, match="different choices"):
        Choice("red", ("blue", "green"))


def test_a_box_is_graded_by_its_overlap() -> None:
    answer = OneBox([0, 0, 100, 100], AnswerGrid(224))
    assert answer.grade("[0, 0, 50, 100]") == pytest.approx(0.5)
    assert answer.grade('{"bbox_2d": [0, 0, 100, 100]}') == 1
    assert answer.grade("[0, 0, 100, 100], [0, 0, 1, 1]") is None
    assert answer.grade("[[0, 0, 100, 100], [0, 0, 1, 1]]") is None


def test_boxes_are_graded_with_their_labels() -> None:
    there = [("cube", [0, 0, 50, 50]), ("ball", [60, 60, 90, 90])]
    answer = LabelledBoxes(there, ["cube", "ball"], 3, AnswerGrid(224))
    boxes = json.loads(answer.text)
    assert answer.grade(json.dumps(boxes[:1])) == pytest.approx(2 / 3)
    boxes[1]["label"] = "cube"
    assert answer.grade(json.dumps(boxes)) == pytest.approx(0.5)
    assert answer.grade("[]") == 0
    assert LabelledBoxes([], ["cube"], 3, AnswerGrid(224)).grade("[]") == 1


@pytest.mark.parametrize(("frame", "extent"), [("per_1000", 1000), ("per_999", 999), ("unit", 1)])
@pytest.mark.parametrize("name", ["visual/referring", "visual/detection"])
def test_boxes_may_be_written_in_other_frames(name: str, frame: str, extent: float) -> None:
    pixels: Any = open_env(name, {"level": 2})
    other: Any = open_env(name, {"level": 2, "frame": frame})
    for seed in range(20):
        shown = [env.reset({}, seed) for env in (pixels, other)]
        assert (np.asarray(shown[0].images[0]) == np.asarray(shown[1].images[0])).all()
        assert "pixels" in shown[0].text
        assert f"{extent:g} at the right" in shown[1].text
        one, two = (flat(env.question.answer) for env in (pixels, other))
        assert np.array(two) / extent == pytest.approx(np.array(one) / 224, abs=0.001)
        assert other.step(other.oracle()).reward == 1


def flat(answer: Any) -> list[float]:
    return list(answer.box) if isinstance(answer, OneBox) else [x for _, box in answer.boxes for x in box]


@pytest.mark.parametrize("name", ["visual/referring", "visual/detection"])
def test_a_frame_that_an_environment_cannot_know_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="frame='resized_pixels'"):
        open_env(name, {"frame": "resized_pixels"})
