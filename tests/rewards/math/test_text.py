r"""How an expression may be dressed, and what must not be read into it: an adversarial battery."""

from __future__ import annotations

from fractions import Fraction

import pytest

from vlrl.rewards.math.reward import math
from vlrl.rewards.math.text import is_passed_over, spelled, undressed, unnamed


def score(said: str, answer: object, **options: object) -> float:
    return math(said, answer, part="whole", **options)  # type: ignore[arg-type]


DRESSED = [
    *(r"\boxed{\text{30}}", r"\text{30}", r"\text{ 30 }", r"\textbf{30}", r"\textit{30}", r"\textrm{30}"),
    *(r"\mathrm{30}", r"\mathbf{30}", r"\mathit{30}", r"\mathsf{30}", r"\mbox{30}", r"\bm{30}"),
    *(r"\boldsymbol{30}", r"\mathbf{\text{30}}", r"\boxed{\mathbf{30}}", r"$\mathbf{30}$", r"\text{30 cm}"),
    *("{30}", "{{30}}", "{ 30 }", r"{\text{30}}", r"\boxed{{30}}", "{30.0}", r"\left(30\right)"),
    *("AB = 30", "AB=30", "AB = {30}", r"AB = \text{30}", "ABC = 30", "AB = CD = 30", "AB' = 30", "A_1 = 30"),
    *(r"\overline{AB} = 30", r"m\angle ABC = 30", r"\angle A = 30^\circ", r"\triangle ABC = 30", "x = 30"),
    *(r"\text{area} = 30", r"\text{the area} = 30", r"\mathrm{AB} = 30", r"\boxed{AB = 30}", r"$AB = 30$"),
    *(r"30^\circ", "30°", r"30 ^ { \circ }", r"30^{ \circ }", r"30 ^ \circ", r"30\degree", r"30^{\degree}"),
    *(
        r"30\text{ cm}",
        r"30\text{ cm}^2",
        r"30 \mathrm{cm}^{2}",
        r"30\,\text{units}",
        r"30\text{th}",
        "30 cm",
    ),
    *(
        r"\frac{60}{2}",
        r"\frac { 60 } { 2 }",
        "60/2",
        r"3\times10^1",
        r"3 \cdot 10^{1}",
        "0.3E2",
        r"\$30",
    ),
    *(r"3000\%", "+30", "(30)", "030"),
    *(r"\displaystyle 30", r"\boxed{\displaystyle\frac{60}{2}}", r"$\displaystyle 30$", r"{\textstyle 30}"),
    *(r"\displaystyle{30}", r"x = \displaystyle 30"),
]


@pytest.mark.parametrize("said", DRESSED)
def test_dress_changes_no_value(said: str) -> None:
    assert score(said, "30") == score(said, "30", unevaluated=True) == 1.0
    assert score(said, "31") == score(said, "3") == score(said, "0") == 0.0
    assert score(said, "31", unevaluated=True) == 0.0


@pytest.mark.parametrize(
    "answer",
    [
        *(
            r"45 ^ { \circ }",
            r"45^{ \circ }",
            r"45 ^ \circ",
            "45°",
            r"45\degree",
            r"\text{45}",
            r"\mathrm{45}",
        ),
        *(
            r"\displaystyle 45",
            "{45}",
            "AB = 45",
            r"m\angle A = 45^\circ",
            r"\overline{AB} = 45",
            r"\boxed{45}",
            "45 cm",
        ),
    ],
)
def test_a_dressed_reference_can_be_won(answer: str) -> None:
    for said in ("45", r"45^\circ", r"\boxed{45}", "45.0", answer):
        assert score(said, answer) == 1.0
    for said in ("46", "", "4", "5", r"46^\circ", "450"):
        assert score(said, answer) == 0.0


@pytest.mark.parametrize(
    ("said", "answer"), [("1 1/2", "1.5"), ("1.5", "1 1/2"), ("3/2", "1 1/2"), ("-1 1/2", "-1.5")]
)
def test_mixed_numbers(said: str, answer: str) -> None:
    assert score(said, answer) == 1.0
    assert score("1", answer) == score("2", answer) == score("1/2", answer) == 0.0


COMPUTED = [
    *((r"\binom{5}{2}", 10), (r"\dbinom{5}{2}", 10), (r"\tbinom{5}{2}", 10), (r"{5 \choose 2}", 10)),
    *(("4+6", 10), (r"\gcd(20,30)", 10), ("2*5", 10), (r"2\cdot 5", 10), ("5(2)", 10), ("3!", 6)),
]
"""Right, and not written out: a plain number is asked for, unless `unevaluated`."""


@pytest.mark.parametrize(("said", "value"), COMPUTED)
def test_what_is_not_written_out_counts_only_on_request(said: str, value: int) -> None:
    assert score(said, value) == 0.0
    if said != "5(2)":  # the reader adds these up
        assert score(said, value, unevaluated=True) == 1.0
    for other in (7, 52, 3, 2.5):
        assert score(said, other) == score(said, other, unevaluated=True) == 0.0 or said == "5(2)"


def test_a_reference_that_is_not_written_out() -> None:
    assert score(r"\binom{5}{2}", r"\binom{5}{2}") == score("10", r"\binom{5}{2}") == 1.0
    assert score(r"\binom{5}{3}", r"\binom{5}{2}") == 0.0  # a plain number, or the reference's own words
    assert score("7", r"\binom{5}{2}") == score("52", r"\binom{5}{2}") == 0.0


PASSED_OVER = [
    *((r"3 \ldots 4", 7), (r"3 \dots 4", 7), (r"3 \cdots 4", 7), ("3...4", 7), ("3 … 4", 7), (r"3\ldots", 3)),
    *((r"3\phantom{4}", 7), (r"\phantom{3}4", 7), (r"3\hphantom{4}", 7), (r"3 \displaystyle 4", 7)),
    *(
        (r"3 \negmedspace 4", 7),
        (r"3\vspace 4", 7),
        ("(3)(4)", 7),
        ("(3)4", 7),
        ("(3) (4)", 7),
        ("(3){4}", 7),
    ),
    *(("3_4", 3), ("3_{4}", 3), ("3 _ 4", 3), ("7_000", 7), ("7 e 2", 7), ("3'4", 34), ('3"4', 34)),
    *((r"3\$4", 34), (r"3\!4", 34), (r"3\text{}4", 34), (r"3\text{ }4", 34), (r"3\mathrm{th}4", 34)),
]


@pytest.mark.parametrize(("said", "value"), PASSED_OVER)
def test_nothing_is_passed_over(said: str, value: int) -> None:
    """math-verify's reader leaves a part out and makes `value` of the rest."""
    assert score(said, value) == score(said, value, unevaluated=True) == score(said, 12) == 0.0
    assert score(rf"\boxed{{{said}}}", value, unevaluated=True) == 0.0
    assert is_passed_over(said)


@pytest.mark.parametrize(
    "said", ["3{4}", "{3}4", "{3} 4", "3 {4}", "{3}{4}", "3 4", r"3\quad 4", r"\text{3} 4", "[3]4"]
)
def test_numbers_side_by_side_are_no_sum(said: str) -> None:
    assert score(said, 7) == score(said, 34) == score(said, 12) == score(said, 3) == score(said, 4) == 0.0


@pytest.mark.parametrize("answer", [r"1,2,\ldots,10", "101_2", "0.333...", "7..."])
def test_a_reference_that_cannot_be_read_is_won_in_its_own_words(answer: str) -> None:
    assert score(answer, answer) == score(answer.replace(",", " , "), answer) == 1.0
    for said in ("1,2,10", "101", "101_3", "0.333", "7", "1/3", ""):
        assert score(said, answer) == 0.0


NO_NAME = [
    *(
        "AB = 31",
        "AB + CD = 30",
        "2AB = 30",
        "AB = CD = 31",
        "AB = 29 = 30",
        "AB = 30 = 29",
        "not = 30",
        "= 30",
    ),
    *("AB 30", "AB == 30", r"AB \neq 30", "AB < 30", "30 = 31", "AB = CD", "AB =", r"AB = 30 \text{ or } 31"),
    *("AB = 30, 31", "AB = 30; CD = 31", r"AB = \{30\}", "AB = 29 + 1", "AB=30 CD=31", "AB = 3 0"),
]


@pytest.mark.parametrize("said", NO_NAME)
def test_a_name_hides_nothing(said: str) -> None:
    assert score(said, "30") == 0.0


def test_names_of_both_sides_are_compared() -> None:
    assert score("AB = 30", "AB = 30") == 1.0
    assert score("CD = 30", "AB = 30") == score("AB = 31", "AB = 30") == 0.0


@pytest.mark.parametrize(
    ("said", "answer", "expected"),
    [
        ("{1,2}", r"\{1,2\}", 1.0),
        ("{1,2}", "3", 0.0),
        (r"\{30\}", "30", 0.0),
        (r"\text{cat}", "cat", 1.0),
        (r"\text{cat}", r"\text{cat}", 1.0),
        (r"\text{cat}", r"\text{dog}", 0.0),
        (r"\text{30 or 31}", "30", 0.0),
        (r"\text{30}\text{31}", "30", 0.0),
        (r"\text{30}\text{31}", "3031", 0.0),
        (r"\text{not 30}", "30", 0.0),
        (r"\mathbf{x+1}", "x+1", 1.0),
        (r"\mathbf{x+1}", "x+2", 0.0),
        ("{3}+{0}", "3", 0.0),
        ("{3}+{0}", "30", 0.0),
        (r"\{\{30\}\}", "30", 0.0),
        ("{30", "30", 0.0),
        ("30}", "30", 0.0),
        (r"\text{30", "30", 0.0),
    ],
)
def test_braces_and_words(said: str, answer: str, expected: float) -> None:
    assert score(said, answer) == expected


def test_text_is_undressed_once_and_for_all() -> None:
    for said in (*DRESSED, *(text for text, _ in PASSED_OVER), *NO_NAME):
        assert undressed(undressed(said)) == undressed(said)
        assert unnamed(unnamed(said)) == unnamed(said)
    deep = "{" * 900 + "8" + "}" * 900
    assert undressed(deep) == "8"


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("8", ["8"]),
        ("1,234.5", ["1234.5"]),
        (r"1\frac{1}{2}", ["3/2"]),
        (r"\frac12", ["1/2"]),
        (r"1\frac{1}2", ["3/2"]),
        ("50%", ["50", "1/2"]),
        (r"1.2\times10^{-3}", ["0.0012"]),
        ("10^3", ["1000"]),
        (r"10^{99999}", []),
        ("1/0", []),
        ("", []),
    ],
)
def test_magnitudes_from_digits(text: str, values: list[str]) -> None:
    assert list(spelled(text)) == [Fraction(value) for value in values]
