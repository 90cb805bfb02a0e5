"""Rewards on text, and what models try in order to get them without the work."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlrl.rewards.extract import extract_answer
from vlrl.rewards.format import think_answer_format
from vlrl.rewards.text import answer_exact

RIGHT = "<think>3+5</think><answer>8</answer>"


@pytest.mark.parametrize(
    "completion",
    [
        RIGHT,
        "<think></think><answer>8</answer>",
        "<think>3+5</think>\n\n<answer>8</answer>\n",
        "<think>3+5</think><answer> 8 </answer>",
        "<think>line\nline\n1 < 2 > 0</think><answer>8</answer>",
        "<think>is it 7? no, 8</think><answer>8</answer>",
    ],
)
def test_a_right_answer_in_form_scores_one(completion: str) -> None:
    assert answer_exact(completion, "8") == 1.0
    assert answer_exact(completion, 8) == 1.0
    assert think_answer_format(completion, None) == 1.0


@pytest.mark.parametrize(
    "completion",
    [
        "8",
        "",
        "<answer>8</answer>",  # no thinking
        "<think>3+5</think>8",
        "<answer>8</answer><think>3+5</think>",
        RIGHT + "<answer>7</answer>",  # two answers
        "<think>3+5</think><answer>7</answer><answer>8</answer>",
        RIGHT + RIGHT,
        RIGHT + " or 9",  # text after
        "It is: " + RIGHT,  # text before
        "<think>3+5</think> so <answer>8</answer>",  # text between
        "<think><answer>8</answer></think><answer>8</answer>",  # nested
        "<think><think>3+5</think></think><answer>8</answer>",
        "<think>3+5</think><answer><answer>8</answer></answer>",
        "<think>3+5</think><answer><think>8</think></answer>",
        "<think>3+5<answer>8</answer>",  # never closed
        "<think>3+5</think><answer>8",
        "<THINK>3+5</THINK><ANSWER>8</ANSWER>",
        "<think>3+5</think><answer>8</ answer>",
        "<think>3+5</think>\u200b<answer>8</answer>",  # a zero-width space is no white space
    ],
)
def test_every_other_form_scores_nothing(completion: str) -> None:
    assert answer_exact(completion, "8") == 0.0
    assert think_answer_format(completion, "8") == 0.0


@pytest.mark.parametrize(
    "said",
    [
        "7",
        "8.0",
        "08",
        "+8",
        "8 ",
        "eight",
        "7 8",
        "0,1,2,3,4,5,6,7,8",
        "*",
        "",
        "\uff18",
        "\u0668",
        "8\u200b",
    ],
)
def test_an_answer_that_is_not_the_same_string_scores_nothing(said: str) -> None:
    """Also other scripts' eights (fullwidth, Arabic-Indic): int() would read them as 8."""
    completion = f"<think>x</think><answer>{said}</answer>"
    assert answer_exact(completion, "8") == float(said.strip() == "8")
    assert think_answer_format(completion, "8") == float(bool(said.strip()))


def test_a_sample_without_an_answer_cannot_be_answered_with_none() -> None:
    with pytest.raises(ValueError, match="no 'answer'"):
        answer_exact("<think></think><answer>None</answer>", None)


# Law 10: model output is data.


@pytest.mark.parametrize(
    "said", ["4+4", "2**3", "__import__('os').getcwd()", "{8}", "%d", ".*", "8|9", "\\d", "[0-9]", "${8}"]
)
def test_an_answer_is_compared_and_never_evaluated(said: str) -> None:
    assert answer_exact(f"<think></think><answer>{said}</answer>", "8") == 0.0
    assert answer_exact(f"<think></think><answer>{said}</answer>", said) == 1.0


@pytest.mark.parametrize(
    "completion",
    [
        "<think>" * 100_000,
        "<think>" + "<" * 500_000,
        "<think>" + "a" * 500_000 + "</think>" + " " * 500_000,
        "<think></think>" + " \n" * 250_000 + "<answer",
        "<think></think><answer>" + "</answe" * 100_000,
        "<think></think><answer>8</answer>" + " " * 500_000 + "x",
        "<think>" + "</think> <answer>" * 50_000,
    ],
)
def test_a_huge_completion_takes_no_longer_than_its_length(completion: str) -> None:
    begin = time.perf_counter()
    assert extract_answer(completion) is None
    assert time.perf_counter() - begin < 2.0  # quadratic time would be minutes


@given(st.text(st.sampled_from("<>/thinkaswer 8"), max_size=60))
def test_no_text_raises(completion: str) -> None:
    found = extract_answer(completion)
    assert found is None or found in completion


@given(st.text(max_size=30), st.text(max_size=30))
def test_any_two_parts_without_tags_are_read_back(thought: str, answer: str) -> None:
    if any(tag in part for part in (thought, answer) for tag in ("think>", "answer>")):
        return
    assert extract_answer(f"<think>{thought}</think><answer>{answer}</answer>") == answer.strip()
