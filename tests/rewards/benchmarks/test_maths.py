"""MathVista's normalisation and MathVerse's letters, on cases worked out from their scripts."""

from __future__ import annotations

import pytest

from vlrl.rewards.benchmarks.maths import mathverse, mathvista, short_answer

CITIES = ["hong kong", "osaka", "shanghai", "tokyo"]


@pytest.mark.parametrize(
    ("said", "score"),
    [
        ("tokyo", 1),
        ("D", 1),
        ("(D) tokyo", 1),
        ("(d)", 1),
        ("Tokyo", 1),  # one edit away, farther from the others
        ('The plane is Japanese. The answer is "tokyo".', 1),
        ("Osaka and Shanghai are smaller.\nThe answer is (D).", 1),
        ("(A)", 0),
        ("osaka", 0),
        ("The answer is B", 0),
        ("", 0),
    ],
)
def test_a_choice_is_a_letter_or_the_nearest_text(said: str, score: float) -> None:
    assert mathvista(said, "tokyo", choices=CITIES, part="whole") == score


@pytest.mark.parametrize(
    ("said", "answer", "answer_type", "precision", "score"),
    [
        ("14", "14", "integer", None, 1),
        ("14.0", "14", "integer", None, 1),  # int(float("14.0"))
        ("14.9", "14", "integer", None, 1),  # the official rule cuts
        ("There are 3 boys and 11 girls, so the answer is 14.", "14", "integer", None, 1),
        ("3 + 11 = 14 people\n14", "14", "integer", None, 1),
        ("1,400", "1400", "integer", None, 1),
        ("fourteen", "14", "integer", None, 0),
        ("1.24", "1.2", "float", 1.0, 1),
        ("1.26", "1.2", "float", 1.0, 0),
        ("1.256", "1.26", "float", 2.0, 1),
        ("about $1.20", "1.2", "float", 2.0, 1),
        ("[1, 2, 3]", "[1, 2, 3]", "list", None, 1),
        ("The list is [1, 2, 3].", "[1, 2, 3]", "list", None, 1),
        ("[1, 2]", "[1, 2, 3]", "list", None, 0),
    ],
)
def test_numbers_and_lists(
    said: str, answer: str, answer_type: str, precision: float | None, score: float
) -> None:
    found = mathvista(said, answer, answer_type=answer_type, precision=precision, part="whole")  # type: ignore[arg-type]
    assert found == score


@pytest.mark.parametrize(
    ("said", "answer", "question_type", "score"),
    [
        ("D", "D", "multi-choice", 1),
        ("D: 140°", "D", "multi-choice", 1),
        ("AB is parallel to CD.\nAnswer: (D)", "D", "multi-choice", 1),
        ("\\boxed{D}", "D", "multi-choice", 1),
        ("C", "D", "multi-choice", 0),
        ("140", "D", "multi-choice", 0),
        ("x = 7, so the answer is 7.", "7", "free-form", 1),
        ("\\boxed{\\frac{1}{2}}", "0.5", "free-form", 1),
        ("8", "7", "free-form", 0),
        ("", "7", "free-form", 0),
    ],
)
def test_mathverse(said: str, answer: str, question_type: str, score: float) -> None:
    assert mathverse(said, answer, question_type=question_type, part="whole") == score


def test_what_of_a_response_is_its_answer() -> None:
    assert short_answer("a\n\n**b**\n") == "b"
    assert short_answer("The answer is 3? No.\nFinal Answer: 4") == "4"
    assert short_answer("\\boxed{1} or rather \\boxed{2^{3}}") == "2^{3}"
