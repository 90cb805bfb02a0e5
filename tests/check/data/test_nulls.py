"""Null policies: by hand on small sets, chance by kind, and no built-in set that is won without looking."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from vlrl.check.data.asked import asked_of
from vlrl.check.data.nulls import LEAST_ROWS, MARGIN, AskedRow, Null, null_policies
from vlrl.envs.gui.grounding import GuiGrounding
from vlrl.envs.visual.questions.digit_sum import DigitSum

SIZE = (480, 640)


def row(answer: Any, text: str = "What is it?", **metadata: Any) -> dict[str, Any]:
    return {
        "id": "r",
        "messages": [{"role": "user", "content": text}],
        "answer": answer,
        "metadata": metadata,
    }


def nulls(rows: list[dict[str, Any]], size: tuple[int, int] | None = SIZE) -> dict[str, Null]:
    asked = [asked_of(one, size) for one in rows]
    return {null.name: null for null in null_policies([one for one in asked if one])}


def test_a_constant_answer_is_found() -> None:
    rng = np.random.default_rng(0)
    found = nulls([row("yes" if rng.random() < 0.7 else "No.") for _ in range(400)])["constant answer"]
    assert found.score == pytest.approx(0.65, abs=0.05) and found.chance == 0.5 and found.is_marked
    assert found.example == "yes" and found.error < 0.03
    even = nulls([row(str(n % 5)) for n in rng.permutation(500)])["constant answer"]
    assert even.chance == 0.2 and not even.is_marked


def test_questions_that_tell_their_answer_are_found() -> None:
    rows = [row("red", "Which colour has the apple?"), row("blue", "Which colour has the sky?")] * 50
    found = nulls(rows)
    assert found["no image"].score == 1 and found["constant answer"].score < 0.6
    assert found["no image"].chance == 1  # each was asked often, and never answered otherwise
    mixed = [row(str(n % 2), f"Case {n % 7}: is it so?") for n in range(280)]
    assert nulls(mixed)["no image"].chance == 0.5 and not nulls(mixed)["no image"].is_marked


def test_options() -> None:
    options = ["a red car", "a dog", "the old blue house on the hill"]
    text = "What is it?\nA. a red car\nB. a dog\nC. the old blue house on the hill\n"
    always_longest = [row("C", text) for _ in range(40)]
    found = nulls(always_longest)
    assert found["longest option"].score == found["usual option"].score == 1
    assert found["first option"].score == 0
    assert found["longest option"].chance == pytest.approx(1 / 3) and found["longest option"].is_marked
    by_words = [row(options[n % 3], choices=options) for n in range(90)]
    assert nulls(by_words)["first option"].score == pytest.approx(1 / 3)


def test_clicks_and_boxes() -> None:
    corner = {"action": "click", "bbox": [0, 0, 64, 48]}
    other = {"action": "click", "bbox": [300, 200, 364, 248]}
    rows = [row(corner, "Click 'Apps'.")] * 80 + [row(other, "Click 'x'.")] * 20
    found = nulls([rows[n] for n in np.random.default_rng(0).permutation(100)])
    assert found["best fixed click"].score == pytest.approx(0.8)
    assert found["centre click"].score == pytest.approx(0.2)
    assert found["no image"].score == 1
    assert found["best fixed click"].chance == pytest.approx(0.01) and found["best fixed click"].is_marked
    boxes = nulls([row([10, 10, 630, 470])] * 40)
    assert boxes["whole image"].score == boxes["median box"].score == 1
    assert boxes["whole image"].chance == 0


@pytest.mark.parametrize(
    ("answer", "kind"),
    [("7", "text"), (7, "text"), ("<answer>yes</answer>", "text"), (["cat", "kitten"], "text"), (None, None),
     ([1, 2, 3, 4], "box"), ("[1, 2, 3, 4]", "box"), ({"action": "click", "bbox": [1, 2, 3, 4]}, "click"),
     ({"action": "click", "point": [5, 5]}, "click"), ({"action": "type", "text": "a"}, None),
     ("x" * 999, None),
     ([1, 2, 9000, 9000], "text"), ({"a": 1}, None), (True, None), (np.int64(3), "text"), ("", None)],
    ids=str,
)  # fmt: skip
def test_the_kind_of_an_answer(answer: Any, kind: str | None) -> None:
    found = asked_of(row(answer), SIZE)
    assert (found.kind if found else None) == kind


def test_few_rows_and_episodes_tell_nothing() -> None:
    assert nulls([row("yes")] * (LEAST_ROWS - 1)) == {}
    assert asked_of({**row("yes"), "env": {"name": "x"}}, SIZE) is None


def measured(dataset: Any, num_rows: int) -> dict[str, Null]:
    found: list[AskedRow | None] = []
    for index in range(num_rows):
        one = dataset[index]
        images = [part["image"] for part in one["messages"][-1]["content"] if part["type"] == "image"]
        found.append(asked_of(one, np.asarray(images[0]).shape[:2]))
    assert None not in found
    return {null.name: null for null in null_policies([asked for asked in found if asked])}


@pytest.mark.slow
def test_grounding_cannot_be_won_without_looking() -> None:
    """Where the launcher was named in 40 % of rows, one fixed click was right in 0.40."""
    found = measured(GuiGrounding(num_rows=4096), 250)
    assert found.keys() == {"centre click", "best fixed click", "no image"}
    for null in found.values():
        assert null.excess <= MARGIN, null


def test_digit_sums_cannot_be_won_without_looking() -> None:
    found = measured(DigitSum(), 300)
    assert found.keys() == {"constant answer", "no image"}
    for null in found.values():
        assert null.excess <= MARGIN, null
