"""Rewards on text, and what models try in order to get them without the work."""

from __future__ import annotations

import re
import time
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlrl.errors import ConfigError
from vlrl.parsing.extract import extract_answer
from vlrl.parsing.text import normalize
from vlrl.rewards.text.exact import answer_exact, answer_normalized, yes_no
from vlrl.rewards.text.format import think_answer_format

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
        "<think>3+5</think>\u200b<answer>8</answer>",  # a zero-width space is not white space
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
    assert time.perf_counter() - begin < 30  # quadratic time would be minutes


@given(st.text(st.sampled_from("<>/thinkaswer 8"), max_size=60))
def test_no_text_raises(completion: str) -> None:
    found = extract_answer(completion)
    assert found is None or found in completion


@given(st.text(max_size=30), st.text(max_size=30))
def test_any_two_parts_without_tags_are_read_back(thought: str, answer: str) -> None:
    if any(tag in part for part in (thought, answer) for tag in ("think>", "answer>")):
        return
    assert extract_answer(f"<think>{thought}</think><answer>{answer}</answer>") == answer.strip()


# Normalised answers, as VQA compares them.


def vqa_processed(text: str) -> str:
    """What the official VQA evaluation does to an answer, after its description (contractions apart)."""
    text = text.replace("\n", " ").replace("\t", " ").strip()
    comma_in_number = re.search(r"\d,\d", text) is not None
    original = text
    for mark in ';/[]"{}()=+\\_-><@`,?!':
        if f"{mark} " in original or f" {mark}" in original or comma_in_number:
            text = text.replace(mark, "")
        else:
            text = text.replace(mark, " ")
    text = re.sub(r"\.(?!\d)", "", text)
    names = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
    digits = {"none": "0", **{name: str(number) for number, name in enumerate(names)}}
    words = [digits.get(word, word) for word in text.lower().split()]
    return " ".join(word for word in words if word not in ("a", "an", "the"))


VQA_FIRST = [
    "cat",
    "The cat",
    "two",
    "A red car",
    "No.",
    "yes!",
    "1,000",
    "3.5",
    "rock-n-roll",
    "black/white",
]
VQA_SECOND = ["Cat", "the  cat.", "2", "red car", "no", "Yes", "1000", "3.50", "rock n roll", "1 2"]
VQA_SECOND += ["none", "0"]


def test_vqa_accuracy_on_a_hundred_pairs() -> None:
    """Equality after processing, and min(1, matches / 3) over annotators."""
    pairs = list(product(VQA_FIRST, VQA_SECOND))
    assert len(pairs) >= 100
    for said, right in pairs:
        theirs = float(vqa_processed(said) == vqa_processed(right))
        assert answer_normalized(said, right, part="whole") == theirs, (said, right)
    for said in VQA_FIRST:
        theirs = min(1.0, sum(vqa_processed(said) == vqa_processed(r) for r in VQA_SECOND) / 3)
        assert answer_normalized(said, VQA_SECOND, part="whole", consensus=3) == pytest.approx(theirs)


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("A", "a"),  # theirs: nothing, so that A is right where the is
        ("!!!", "!!!"),
        ("-5", "-5"),  # theirs: 5
        ("co-op -x", "co op x"),  # theirs: coop x
        ("don't", "dont"),
        ("Straße", "strasse"),
        ("\uff18", "8"),
        ("1,234,567.5", "1234567.5"),
        ("1,2", "1 2"),
        ("5%", "5%"),
        ("U.S.A.", "usa"),
    ],
)
def test_where_normal_is_not_vqa_s(text: str, normal: str) -> None:
    assert normalize(text) == normal


@given(st.text(max_size=40))
def test_what_is_normal_stays_so(text: str) -> None:
    once = normalize(text)
    assert bool(once) == bool(text.split())
    assert normalize(f"  {text}\n") == once


@pytest.mark.parametrize("answer", [None, "", "  ", [], ["a", ""], {"a": 1}, "x" * 20_001, b"a"])
def test_an_unusable_sample_is_not_scored(answer: object) -> None:
    for reward in (answer_exact, answer_normalized, yes_no):
        with pytest.raises(ValueError, match="the sample"):
            reward("a", answer, part="whole")


def test_of_several_references_any_will_do() -> None:
    assert (
        answer_exact("b", ["a", "b"], part="whole") == answer_normalized("B", ["a", "b"], part="whole") == 1.0
    )
    with pytest.raises(ValueError, match="fewer than consensus=3"):
        answer_normalized("b", ["a", "b"], consensus=3)
    with pytest.raises(ConfigError, match="consensus=0"):
        answer_normalized("b", "b", consensus=0)


def test_only_two_parts_are_scored() -> None:
    assert answer_exact(" 8\n", "8", part="whole") == 1.0
    with pytest.raises(ConfigError, match="part='anser'"):
        answer_exact("8", "8", part="anser")  # type: ignore[arg-type]


def vlm_r1_yes_no(text: str) -> str:
    """The first "yes" or "no" anywhere in the lower-case text; empty if there is none."""
    found = [(text.lower().find(word), word) for word in ("yes", "no") if word in text.lower()]
    return min(found)[1] if found else ""


def test_vlm_r1_s_yes_no_on_sixty_cases() -> None:
    forms = ["{}", "{}.", " {} ", "{}!", "\n{}\n", '"{}"']
    words = ["yes", "no", "Yes", "NO", "YES", "No"]
    cases = [(form.format(said), right) for form, said, right in product(forms, words, ["yes", "no"])]
    assert len(cases) >= 60
    for said, right in cases:
        assert yes_no(said, right, part="whole") == float(vlm_r1_yes_no(said) == right), (said, right)
    # Deliberate: a word that holds one, both at once, a sentence, and neither on either side.
    for said, right in (("I know", "no"), ("yes or no", "yes"), ("No, it is a cat", "no")):
        assert vlm_r1_yes_no(said) == right and yes_no(said, right, part="whole") == 0.0
    assert vlm_r1_yes_no("perhaps") == vlm_r1_yes_no("maybe")
    with pytest.raises(ValueError, match="must be yes or no"):
        yes_no("maybe", "perhaps")
    assert yes_no("yes", True, part="whole") == yes_no("no", False, part="whole") == 1.0
