"""Rewards on length and repetition, against their equations; and that no length makes a wrong answer win."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlrl.coordinates import Canvas
from vlrl.errors import ConfigError
from vlrl.rewards.text.length import cosine_length, cosine_length_media, soft_overlong
from vlrl.rewards.text.repetition import repetition_penalty

RIGHT, WRONG = "<think></think><answer>8</answer>", "<think></think><answer>9</answer>"
LENGTHS = st.integers(0, 10_000)


def overlong(num_tokens: int, max_tokens: int = 100, buffer: int = 20) -> float:
    return soft_overlong("", None, num_tokens=num_tokens, max_tokens=max_tokens, buffer=buffer)


@given(LENGTHS, st.integers(1, 5000), st.integers(1, 5000))
def test_dapo_s_equation_13(length: int, limit: int, cache: int) -> None:
    if cache > limit:
        limit, cache = cache, limit
    if length <= limit - cache:
        expected = 0.0
    elif length <= limit:
        expected = ((limit - cache) - length) / cache
    else:
        expected = -1.0
    assert overlong(length, limit, cache) == pytest.approx(expected)
    assert -1.0 <= overlong(length + 1, limit, cache) <= overlong(length, limit, cache) <= 0.0


def test_the_ends_of_the_overlong_penalty() -> None:
    assert [overlong(n) for n in (0, 80, 90, 100, 101, 10**9)] == [0.0, 0.0, -0.5, -1.0, -1.0, -1.0]


@pytest.mark.parametrize(("limit", "buffer"), [(100, 0), (100, 101), (0, 0), (100, -1)])
def test_a_buffer_that_does_not_fit_is_refused(limit: int, buffer: int) -> None:
    with pytest.raises(ConfigError, match="buffer="):
        overlong(5, limit, buffer)


def cosine(completion: str, num_tokens: int, **options: object) -> float:
    return cosine_length(completion, "8", num_tokens=num_tokens, max_tokens=1000, **options)  # type: ignore[arg-type]


def cos_fn(t: float, limit: float, low: float, high: float) -> float:
    """Demystifying Long Chain-of-Thought: CosFn(t, T, η_min, η_max)."""
    return low + 0.5 * (high - low) * (1 + math.cos(t * math.pi / limit))


@given(LENGTHS)
def test_the_cosine_is_the_paper_s_up_to_the_limit_and_level_beyond(length: int) -> None:
    paper = [cos_fn(min(length, 1000), 1000, low, high) for low, high in ((0.0, 0.5), (0.0, -0.5))]
    assert [cosine(RIGHT, length), cosine(WRONG, length)] == pytest.approx(paper)
    theirs = {"correct_short": 2.0, "correct_long": 1.0, "wrong_short": -10.0, "wrong_long": 0.0}
    assert cosine(RIGHT, length, **theirs) == pytest.approx(cos_fn(min(length, 1000), 1000, 1.0, 2.0))
    assert cosine(WRONG, length, **theirs) == pytest.approx(cos_fn(min(length, 1000), 1000, 0.0, -10.0))


@given(LENGTHS, LENGTHS)
def test_added_to_accuracy_it_never_turns_right_and_wrong_round(one: int, other: int) -> None:
    assert 1.0 + cosine(RIGHT, one) >= 1.0 > 0.0 >= 0.0 + cosine(WRONG, other)
    if one <= other:
        assert cosine(RIGHT, one) >= cosine(RIGHT, other) - 1e-12
        assert cosine(WRONG, one) <= cosine(WRONG, other) + 1e-12


def test_vlm_r1_s_cosine_reward_on_a_hundred_lengths() -> None:
    """Theirs is in the accuracy's place: 1.0 → 0.5 if right, 0 → −0.5 if wrong, over 1024 tokens.

    The same numbers are accuracy plus a term from 0 to −0.5. Beyond the limit theirs rises again.
    """
    options = {"correct_short": 0.0, "correct_long": -0.5, "wrong_short": -0.5, "wrong_long": -0.5}
    for length in range(0, 1030, 10):
        theirs = cos_fn(length, 1024, 0.5, 1.0)
        ours = 1.0 + cosine_length(RIGHT, "8", num_tokens=length, max_tokens=1024, **options)  # type: ignore[arg-type]
        assert ours == pytest.approx(theirs, abs=0.001 if length > 1024 else 1e-9)
    assert cos_fn(2048, 1024, 0.5, 1.0) == pytest.approx(1.0)
    assert 1.0 + cosine_length(RIGHT, "8", num_tokens=2048, max_tokens=1024, **options) == 0.5  # type: ignore[arg-type]


def test_what_is_right_is_another_reward_s_say(tmp_path: Path) -> None:
    assert cosine("8.0", 0, accuracy="numeric", accuracy_options={"part": "whole"}) == 0.5
    assert cosine("8.0", 0) == -0.5
    choice = {"accuracy": "multiple_choice", "accuracy_options": {"part": "whole"}, "choices": ["7", "8"]}
    assert cosine("B", 0, **choice) == 0.5 and cosine("A", 0, **choice) == -0.5
    soft = {"accuracy": "token_f1", "accuracy_options": {"part": "whole"}, "threshold": 0.6}
    assert cosine("8 9", 0, **soft) == 0.5 and cosine("8 9 7", 0, **soft) == -0.5
    box = {"accuracy": "box_iou", "accuracy_options": {"part": "whole"}, "threshold": 0.5, "max_tokens": 10}
    canvas = Canvas((100, 100), (100, 100), "unit")
    said = cosine_length("[0, 0, 0.1, 0.2]", [0, 0, 10, 10], num_tokens=0, canvases=[canvas], **box)  # type: ignore[arg-type]
    assert said == 0.5
    file = tmp_path / "mine.py"
    file.write_text(
        "def seen(completion, answer, media, num_tokens):\n    return {'a': len(media), 'b': 0.5}\n"
    )
    of_media = {"accuracy": f"{file}:seen", "threshold": 1.5, "max_tokens": 10}
    assert cosine_length_media("", "8", num_tokens=0, media=(None,), **of_media) == 0.5  # type: ignore[arg-type]
    assert cosine_length_media("", "8", num_tokens=0, media=(), **of_media) == -0.5


def test_a_broken_sample_stays_one() -> None:
    with pytest.raises(ValueError, match="no 'answer'"):
        cosine_length(RIGHT, None, num_tokens=1, max_tokens=10)


def test_options_with_which_wrong_could_win_are_refused(tmp_path: Path) -> None:
    for options in ({"wrong_long": 0.1}, {"correct_long": -0.6}, {"wrong_short": 0.6}):
        with pytest.raises(ConfigError, match="every wrong value must be at most every correct one"):
            cosine(RIGHT, 5, **options)
    with pytest.raises(ConfigError, match="max_tokens=0"):
        cosine_length(RIGHT, "8", num_tokens=5, max_tokens=0)
    file = tmp_path / "later.py"
    file.write_text("async def later(completion, answer):\n    return 1.0\n")
    with pytest.raises(ConfigError, match="plain function"):
        cosine(RIGHT, 5, accuracy=f"{file}:later")


# Repetition.


def test_one_minus_distinct_over_all_on_two_hundred_texts() -> None:
    """TRL's, open-r1's and VLM-R1's definition: (1 − |set of n-grams| / number of n-grams) · max_penalty."""
    draw = random.Random(0)
    for _ in range(200):
        words = draw.choices(["a", "B", "c,", "d"], k=draw.randint(0, 20))
        n = draw.randint(1, 6)
        grams = [tuple(w.lower() for w in words[i : i + n]) for i in range(len(words) - n + 1)]
        expected = -0.7 * (1 - len(set(grams)) / len(grams)) if grams else 0.0
        assert repetition_penalty(" ".join(words), None, n=n, max_penalty=0.7) == pytest.approx(expected)


@given(st.text(max_size=60), st.integers(1, 5), st.sampled_from(["words", "characters", "items"]))
def test_it_is_a_penalty_and_bounded(text: str, n: int, unit: str) -> None:
    once = repetition_penalty(text, None, n=n, unit=unit)  # type: ignore[arg-type]
    assert -1.0 < once <= 0.0


def test_saying_it_again_and_again_costs_almost_all() -> None:
    assert repetition_penalty("one two three four five six " * 1000, None) < -0.99
    assert repetition_penalty("好的。" * 1000, None, unit="characters") < -0.99
    assert repetition_penalty("好的。" * 1000, None) == 0.0  # one word: characters are for such scripts
    assert repetition_penalty("", None) == 0.0
    assert repetition_penalty("a b c d e", None) == 0.0


def test_boxes_said_twice() -> None:
    box = {"bbox_2d": [1, 2, 3, 4], "label": "cat"}
    turned = {"label": "cat", "bbox_2d": [1, 2, 3, 4]}
    other = {"bbox_2d": [1, 2, 3, 5], "label": "cat"}

    def penalty(text: str) -> float:
        return repetition_penalty(text, None, unit="items")

    for form in ("{}", "```json\n{}\n```", "<think>a</think><answer>```json\n{}\n```</answer>"):
        assert penalty(form.format(json.dumps([box, turned, other, box]))) == -0.5
        assert penalty(form.format(json.dumps([box, other]))) == 0.0
    assert penalty("[]") == 0.0
    assert penalty("a b c d e f " * 100) < -0.9  # no list: words
    for broken in ("[" * 100_000, '["a",', "[1e999, NaN]", "[" + "9" * 10_000 + "]", "[1]" * 100_000):
        assert -1.0 < penalty(broken) <= 0.0


@pytest.mark.parametrize("options", [{"n": 0}, {"unit": "tokens"}, {"max_penalty": -1.0}])
def test_a_wrong_option_is_refused(options: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match="repetition_penalty"):
        repetition_penalty("a", None, **options)  # type: ignore[arg-type]
