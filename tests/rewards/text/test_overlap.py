"""Overlap of texts, against the definitions written out, and bounded whatever is said."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlrl.errors import ConfigError
from vlrl.rewards.text.ocr import character_accuracy, word_accuracy
from vlrl.rewards.text.overlap import anls, edit_similarity, rouge_l, rouge_mean, token_f1

ALL = [edit_similarity, anls, token_f1, rouge_l, rouge_mean, word_accuracy, character_accuracy]
WORDS = st.lists(st.sampled_from(["red", "car", "on", "road", "two", "x"]), min_size=1, max_size=7).map(
    " ".join
)
LETTERS = st.text(st.sampled_from("abc D"), min_size=1, max_size=9).filter(lambda text: bool(text.strip()))


def table(ours: Sequence[str], theirs: Sequence[str], step: Callable[..., int], edge: bool) -> int:
    """The recursion that edit distances and common subsequences share, without any shortcut."""
    rows = [
        [(i or j) * edge if not (i and j) else 0 for j in range(len(theirs) + 1)]
        for i in range(len(ours) + 1)
    ]
    for i, mine in enumerate(ours, 1):
        for j, yours in enumerate(theirs, 1):
            rows[i][j] = step(rows[i - 1][j - 1], rows[i - 1][j], rows[i][j - 1], mine == yours)
    return rows[-1][-1]


def levenshtein(ours: Sequence[str], theirs: Sequence[str]) -> int:
    return table(ours, theirs, lambda both, up, left, same: min(both + (not same), up + 1, left + 1), True)


def common(ours: Sequence[str], theirs: Sequence[str]) -> int:
    return table(ours, theirs, lambda both, up, left, same: both + 1 if same else max(up, left), False)


def f1(shared: int, ours: int, theirs: int) -> float:
    precision, recall = shared / max(ours, 1), shared / max(theirs, 1)
    return 2 * precision * recall / (precision + recall) if shared else 0.0


@given(LETTERS, LETTERS)
def test_edits_are_those_of_the_definition(said: str, right: str) -> None:
    said, right = said.strip(), right.strip()
    edits = levenshtein(said, right)
    expected = 1 - edits / max(len(said), len(right))
    assert edit_similarity(said, right, threshold=0.0, part="whole") == pytest.approx(expected)
    assert edit_similarity(said, right, part="whole") == pytest.approx(expected if expected > 0.5 else 0.0)
    ratio = 2 * common(said, right) / (len(said) + len(right))  # VLM-R1's: python-Levenshtein's ratio
    assert edit_similarity(said, right, kind="indel", threshold=0.0, part="whole") == pytest.approx(ratio)
    spaced = " ".join(said.split()), " ".join(right.split())
    cer = levenshtein(*spaced) / len(spaced[1])
    assert character_accuracy(said, right, threshold=0.0, part="whole") == pytest.approx(max(0.0, 1 - cer))
    assert character_accuracy(said, right, part="whole") == pytest.approx(1 - cer if cer < 0.5 else 0.0)


@given(LETTERS, st.lists(LETTERS, min_size=1, max_size=3))
def test_anls_is_that_of_the_definition(said: str, references: list[str]) -> None:
    """max over references of 1 − NL if NL < 0.5 else 0, in lower case."""
    scores = []
    for reference in references:
        ours, theirs = (" ".join(text.lower().split()) for text in (said, reference))
        distance = levenshtein(ours, theirs) / max(len(ours), len(theirs))
        scores.append(1 - distance if distance < 0.5 else 0.0)
    assert anls(said, references, part="whole") == pytest.approx(max(scores))


@given(WORDS, WORDS)
def test_words_shared_are_those_of_the_definitions(said: str, right: str) -> None:
    """SQuAD's F1, ROUGE-1, -2 and -L with β = 1, and the word error rate."""
    ours, theirs = said.split(), right.split()
    squad = f1((Counter(ours) & Counter(theirs)).total(), len(ours), len(theirs))
    assert token_f1(said, right, part="whole") == pytest.approx(squad)
    rouge = f1(common(ours, theirs), len(ours), len(theirs))
    assert rouge_l(said, right, part="whole") == pytest.approx(rouge)
    pairs = [Counter(pairwise(words)) for words in (ours, theirs)]
    rouge_2 = f1((pairs[0] & pairs[1]).total(), pairs[0].total(), pairs[1].total())
    three = [squad, rouge, rouge_2] if len(theirs) > 1 else [squad, rouge]
    assert rouge_mean(said, right, part="whole") == pytest.approx(sum(three) / len(three))
    wer = levenshtein(ours, theirs) / len(theirs)
    assert word_accuracy(said, right, part="whole") == pytest.approx(max(0.0, 1 - wer))


@pytest.mark.parametrize("reward", [edit_similarity, anls, token_f1, rouge_l])
@given(first=WORDS, second=WORDS)
def test_it_makes_no_difference_which_is_the_reference(
    reward: Callable[..., float], first: str, second: str
) -> None:
    assert reward(first, second, part="whole") == pytest.approx(reward(second, first, part="whole"))


@pytest.mark.parametrize("reward", ALL)
@given(said=st.text(max_size=30), right=st.text(max_size=30))
def test_any_texts_score_between_nothing_and_one(reward: Callable[..., float], said: str, right: str) -> None:
    if not re.search(r"[^\W_]", right):
        return
    assert 0.0 <= reward(said, right, part="whole") <= 1.0
    assert reward(right, [right, "other"], part="whole") == pytest.approx(1.0)
    assert reward(f"<think>{said}</think>", right) == 0.0  # out of form


def test_squad_on_fifty_answers_with_articles_and_marks() -> None:
    """SQuAD's normalisation: lower case, no punctuation, no articles."""

    def squad_words(text: str) -> list[str]:
        return [w for w in re.sub(r"[^\w\s]", "", text.lower()).split() if w not in ("a", "an", "the")]

    draw = random.Random(0)
    bag = ["The", "a", "cat", "Cat.", "dog,", "runs!", "an", "apple", "in", "Paris", '"Paris"']
    for _ in range(60):
        said, right = (" ".join(draw.choices(bag, k=draw.randint(1, 6))) + " mat" for _ in range(2))
        ours, theirs = squad_words(said), squad_words(right)
        expected = f1((Counter(ours) & Counter(theirs)).total(), len(ours), len(theirs))
        assert token_f1(said, right, part="whole") == pytest.approx(expected)


def test_normalised_reading() -> None:
    assert word_accuracy("the CAT, sat.", "Cat sat", part="whole") == 0.0
    assert word_accuracy("the CAT, sat.", "Cat sat", normalized=True, part="whole") == 1.0
    assert character_accuracy("EXIT", "Exit", normalized=True, part="whole") == 1.0
    assert character_accuracy("EXIT", "Exit", part="whole") == 0.0
    assert character_accuracy("EXIT", "Exit", threshold=0.2, part="whole") == pytest.approx(0.25)
    assert word_accuracy("red cat", "red dog", threshold=0.5, part="whole") == 0.0
    assert word_accuracy("red cat", "red dog", part="whole") == 0.5


@pytest.mark.parametrize("reward", ALL)
def test_an_unusable_sample_is_not_scored(reward: Callable[..., float]) -> None:
    for answer in (None, "", [], ["a", None], float("nan")):
        for said in ("8", ""):
            with pytest.raises(ValueError, match="the sample"):
                reward(said, answer, part="whole")
    if reward in (rouge_l, rouge_mean):
        with pytest.raises(ValueError, match="has no words"):
            reward("", "???", part="whole")


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(ConfigError, match="levenshtein and indel"):
        edit_similarity("a", "a", kind="jaro")  # type: ignore[arg-type]


@pytest.mark.parametrize("reward", ALL)
def test_the_longest_texts_take_bounded_time(reward: Callable[..., float]) -> None:
    for said in ("ab " * 6_600, "a" * 20_000, "a\u0301\u0323" * 6_600, "x" * 3_000_000):
        assert 0.0 <= reward(said, "ba " * 6_600, part="whole") <= 1.0  # a plain table would take minutes
