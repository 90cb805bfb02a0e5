"""Multiple choice: one option by letter or text; anything that names several is wrong."""

from __future__ import annotations

from itertools import product

import pytest

from vlrl.rewards.text.choice import LETTERS, multiple_choice

PETS = ["cat", "dog", "A bird", "1,000 fish"]


def score(said: str, answer: object, choices: object = None) -> float:
    return multiple_choice(said, answer, choices=choices, part="whole")  # type: ignore[arg-type]


@pytest.mark.parametrize("answer", ["B", "b", "(B)", "B.", "B) dog", "dog", "The dog"])
@pytest.mark.parametrize(
    "said", ["B", "b", "B.", "(B)", "B)", "B:", "(B).", "B) dog", "B. Dog.", "(B) the dog", "dog", "A dog."]
)
def test_the_right_option_in_every_form(said: str, answer: str) -> None:
    assert score(said, answer, PETS) == 1.0
    assert multiple_choice(f"<think>?</think><answer>{said}</answer>", answer, choices=PETS) == 1.0


WRONG = [
    *(
        "A",
        "C",
        "E",
        "Z",
        "BB",
        "AB",
        "A B",
        "A, B",
        "B, A",
        "A and B",
        "A or B",
        "B or not",
        "(A)(B)",
        "B.A.",
    ),
    *("A) dog", "B) cat", "B) dog C) bird", "B) dog, A) cat", "dog cat", "cat dog", "B B", "B dog", "Bdog"),
    *("The answer is B", "B because", "not B", "ABCD", "A B C D", "", "2", "\uff22\uff22", "?B"),
    "B\n" * 1000,
    "A. cat\nB. dog\nC. a bird\nD. 1,000 fish",
]


@pytest.mark.parametrize("said", WRONG)
def test_several_options_or_a_sentence_score_nothing(said: str) -> None:
    assert score(said, "B", PETS) == 0.0


@pytest.mark.parametrize("said", [s for s in WRONG if s not in ("B) cat",)])
def test_the_same_without_the_options(said: str) -> None:
    assert score(said, "B") == 0.0
    assert score(said, "B. dog") == 0.0


def test_what_is_known_without_the_options() -> None:
    assert score("B", "B") == score("(b)", "B") == score("B. dog", "B") == 1.0
    assert score("B) cat", "B") == 1.0  # nobody can tell
    assert score("B) cat", "B) dog") == 0.0
    assert score("dog", "B) dog") == score("B", "B) dog") == score("Dog.", "dog") == 1.0
    assert score("B) a dog, or C)", "B") == score("B) dog. (C)", "B") == score("B. dog c) fish", "B") == 0.0


def test_texts_that_look_alike() -> None:
    assert score("A bird", "C", PETS) == score("C. A bird", "C", PETS) == 1.0  # an article is not a letter
    assert score("A bird", "A", PETS) == 0.0
    assert score("1000 fish", "D", PETS) == 1.0
    twins = ["red", "Red", "blue"]
    assert score("red", "A", twins) == 0.0  # which of the two?
    assert score("A", "A", twins) == score("A. red", "A", twins) == 1.0
    assert score("dog", "B", ["A. cat", "B. dog"]) == score("B. dog", "dog", ["A. cat", "B. dog"]) == 1.0


@pytest.mark.parametrize(
    ("answer", "choices", "message"),
    [
        (None, PETS, "no 'answer'"),
        ("E", PETS, "not one of its choices"),
        ("horse", PETS, "not one of its choices"),
        ("B) cat", PETS, "not one of its choices"),
        ("red", ["red", "Red"], "not one of its choices"),
        ("B", "cat dog", "list of 2 to 26"),
        ("B", ["cat"], "list of 2 to 26"),
        ("B", ["cat", 2], "list of 2 to 26"),
        (["A", "B"], PETS, "the one right option"),
    ],
)
def test_an_unusable_sample_is_not_scored(answer: object, choices: object, message: str) -> None:
    for said in ("B", "", "junk"):
        with pytest.raises(ValueError, match=message):
            score(said, answer, choices)


def vlm_r1_letter(text: str) -> str | None:
    """The only capital letter that stands at the end or before a mark, and after no capital."""
    found = [
        letter
        for i, letter in enumerate(text)
        if letter in LETTERS
        and (i == 0 or text[i - 1] not in LETTERS)
        and (text[i + 1 : i + 2] or ".") in ".,?!:;"
    ]
    assert len(found) <= 1, "for several, theirs weighs the words around them"
    return found[0] if found else None


def test_vlm_r1_s_mcq_on_a_hundred_cases() -> None:
    """The definitions agree on one letter with a mark, with its text or alone."""
    forms = ["{}", "{}.", "{}:", " {} ", "{}. cat", "{}: the dog"]
    cases = [(form.format(said), right) for form, said, right in product(forms, "ABCDE", "ABCDEFGH")]
    assert len(cases) >= 100
    for said, right in cases:
        assert score(said, right) == float(vlm_r1_letter(said.strip()) == right), (said, right)


def test_where_ours_differs_from_vlm_r1_s_mcq() -> None:
    assert vlm_r1_letter("I think it is B.") == "B" and score("I think it is B.", "B") == 0.0
    assert vlm_r1_letter("(B) dog") is None and score("(B) dog", "B") == 1.0
    assert vlm_r1_letter("b") is None and score("b", "B") == 1.0
