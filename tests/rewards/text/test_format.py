"""Rewards on form: strict, in part, and by a pattern that no completion can turn against the run."""

from __future__ import annotations

import re
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlrl.errors import ConfigError
from vlrl.rewards.text.format import pattern_format, tag_format, think_answer_format

GOOD = "<think>3+5</think>\n<answer>8</answer>"


@pytest.mark.parametrize(
    ("completion", "partial"),
    [
        (GOOD, 1.0),
        ("<think></think><answer>8</answer>", 1.0),
        ("\n " + GOOD + " \n", 1.0),
        ("", 0.0),
        ("8", 0.0),
        ("<THINK></THINK><ANSWER>8</ANSWER>", 0.0),
        ("<think>3+5</think>", 2 / 4),
        ("<answer>8</answer>", 2 / 4),
        ("<answer>8</answer><think>3+5</think>", 2 / 4),
        ("<think>3+5</think><answer>8", 3 / 4),
        ("so " + GOOD, 4 / 5),
        (GOOD + " or 9", 4 / 5),
        ("<think>3+5</think> so <answer>8</answer>", 4 / 5),
        ("a" + GOOD.replace("\n", "b") + "c", 4 / 7),
        ("<think>3+5</think><answer> </answer>", 4 / 5),  # an empty answer
        ("<think><answer>8</answer></think>", 3 / 4),
        (GOOD + GOOD, 4 / 8),
        (GOOD * 1000, 4 / 4000),
        ("<think>" * 30_000, 0.0),  # more tags than are looked at
    ],
)
def test_credit_in_part_is_the_common_subsequence_and_full_only_in_form(
    completion: str, partial: float
) -> None:
    assert tag_format(completion, None, partial=True) == pytest.approx(partial)
    assert tag_format(completion, None) == float(partial == 1.0)


@given(st.lists(st.sampled_from(["<think>", "</think>", "<answer>", "</answer>", "8", " "]), max_size=9))
def test_the_default_tags_are_the_strict_form(pieces: list[str]) -> None:
    """Two ways to the same form: a pattern of the whole, and a walk over the tags."""
    completion = "".join(pieces)
    assert tag_format(completion, None) == think_answer_format(completion, None)
    assert tag_format(completion, None) <= tag_format(completion, None, partial=True) <= 1.0


def test_every_short_sequence_of_pieces_is_told_as_the_other_way_tells_it() -> None:
    pieces = ["<think>", "</think>", "<answer>", "</answer>", "8"]
    sequences = [sequence for length in range(7) for sequence in product(pieces, repeat=length)]
    for sequence in sequences:
        assert tag_format("".join(sequence), None) == think_answer_format("".join(sequence), None)


def test_other_tags_in_another_order() -> None:
    options = {"tags": ["observe", "think", "answer"], "may_be_empty": []}
    assert tag_format("<observe>a</observe> <think>b</think> <answer>c</answer>", None, **options) == 1.0
    assert tag_format("<observe>a</observe> <think></think> <answer>c</answer>", None, **options) == 0.0
    assert tag_format("<think>b</think> <observe>a</observe> <answer>c</answer>", None, **options) == 0.0


@pytest.mark.parametrize("tags", [[], ["a", "a"], ["<think>"], [".*"], ["a b"], [""]])
def test_what_is_no_tag_is_refused(tags: list[str]) -> None:
    with pytest.raises(ConfigError, match="tags"):
        tag_format(GOOD, None, tags=tags)


def test_a_pattern_must_match_the_whole() -> None:
    boxed = r"<think>.*</think>.*\\boxed\{[^{}]+\}\s*"  # EasyR1's format, but for what follows the box
    assert pattern_format("<think>a\nb</think> So \\boxed{8}\n", None, pattern=boxed) == 1.0
    assert pattern_format("<think>a\nb</think> So \\boxed{8} or 9", None, pattern=boxed) == 0.0
    assert pattern_format("", None, pattern=boxed) == 0.0


def test_vlm_r1_s_format_on_fifty_cases() -> None:
    """Full match of think then answer, any text inside: ours differs in nested tags and blank answers."""
    theirs = re.compile(r"<think>.*?</think>\s*<answer>.*?</answer>", re.DOTALL)
    openings = ["", "<think>", "<think>a", "<think>a\nb</think>", "x<think>a</think>"]
    middles = ["", " ", "\n", "so"]
    ends = ["<answer>8</answer>", "<answer>8", "8</answer>"]
    cases = ["".join(parts) for parts in product(openings, middles, ends)]
    assert len(cases) >= 50
    for case in cases:
        assert think_answer_format(case, None) == float(theirs.fullmatch(case) is not None), case
    for nested in (
        "<think>a</think><answer>7</answer><answer>8</answer>",
        "<think>a</think><answer></answer>",
    ):
        assert theirs.fullmatch(nested) and think_answer_format(nested, None) == 0.0


def test_a_pattern_that_backtracks_is_given_up() -> None:
    assert pattern_format("a" * 5000 + "!", None, pattern="(a|aa)+$|(a*)*b") == 0.0


def test_what_is_no_pattern_is_refused() -> None:
    with pytest.raises(ConfigError, match="not a regular expression"):
        pattern_format("x", None, pattern="(")
