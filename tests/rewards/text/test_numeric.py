"""Numbers: read strictly, compared exactly, units converted."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlrl.errors import ConfigError
from vlrl.parsing.units import find_unit, read_quantity
from vlrl.rewards.text.numeric import numeric, numeric_closeness


def score(said: str, answer: object, **options: object) -> float:
    return numeric(said, answer, part="whole", **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "number"),
    [
        *(
            ("8", 8),
            ("+8", 8),
            ("-8", -8),
            ("\u22128", -8),
            ("8.", 8),
            (".5", "1/2"),
            ("0.50", "1/2"),
            ("007", 7),
        ),
        *(("1,234.5", "2469/2"), ("1,234,567", 1234567), ("3/4", "3/4"), ("-3/4", "-3/4"), ("1 3/4", "7/4")),
        *(("1e3", 1000), ("1.5E-2", "3/200"), ("1.2 x 10^3", 1200), ("2×10^-1", "1/5"), ("1e400", 10**400)),
    ],
)
def test_numbers_as_people_write_them(text: str, number: int | str) -> None:
    found = read_quantity(text)
    assert found is not None and found.number == Fraction(number) and found.unit is None


NOT_ONE_NUMBER = [
    *(
        "",
        ".",
        "-",
        "e",
        "8 or 9",
        "8, 9",
        "1,2,8",
        "8 9",
        "7-8",
        "1,23",
        "12,34,567",
        "3/0",
        "1/2/3",
        "--8",
        "8-",
    ),
    *(
        "nan",
        "inf",
        "-inf",
        "Infinity",
        "0x8",
        "1_0",
        "\u0668",
        "\uff18",
        "\u2167",
        "eight",
        "4+4",
        "2**3",
        "x=8",
    ),
    *(
        "about 8",
        "8 apples",
        "8 !",
        "1e",
        "1e9999",
        "9" * 61,
        "8\u200b",
        "$8 €",
        "8" * 10_000,
        "1 2 3/4",
        "8; 8",
    ),
    "\n".join("8" for _ in range(1000)),
]


@pytest.mark.parametrize("text", NOT_ONE_NUMBER)
def test_what_is_not_one_number_scores_nothing(text: str) -> None:
    assert read_quantity(text) is None
    assert score(text, 8, absolute=1e9) == numeric_closeness(text, 8, part="whole") == 0.0


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        *(
            ("1 km", "1000 m"),
            ("100 cm", "1 m"),
            ("1000 mm", "1 Meter"),
            ("3 feet", "1 yd"),
            ("12 in", "1 ft"),
        ),
        *(("1 mile", "1.609344 km"), ("2 hours", "120 min"), ("36 km/h", "10 m/s"), ("1 lb", "16 oz")),
        *(("1 m^2", "10,000 cm²"), ("1 L", "1000 mL"), ("1000 cm^3", "1 l"), ("$1,234.50", "1234.5 dollars")),
        *(("50 cents", "$0.5"), ("5%", "0.05"), ("0.05", "5%"), ("5 percent", "5%"), ("90°", "90 degrees")),
        *(("8", "8 cm"), ("-$5", "-5 USD"), ("2 hectares", "20000 m^2")),
    ],
)
def test_units_are_converted(said: str, answer: str) -> None:
    expected = 0.0 if (said, answer) == ("0.05", "5%") else 1.0  # a unit left out is the answer's
    assert score(said, answer) == expected


def test_units_that_do_not_measure_the_same_score_nothing() -> None:
    assert score("8 kg", "8 m") == score("8 cm", "8") == score("8 m", "8 m²") == score("$8", "€8") == 0.0
    assert score("5%", 5) == 0.0
    assert score("80 mm", 8, unit="cm") == score("8", 8, unit="cm") == 1.0


def test_the_bound_itself_is_near_enough() -> None:
    assert score("0.3", 0.1 + 0.2) == 0.0
    assert score("0.3", "0.3") == score("0.30", 0.3) == 1.0
    assert score("1.1", "1", absolute=0.1) == score("105", "100", relative=0.05) == 1.0
    assert score("105.01", "100", relative=0.05) == score("1.1001", "1", absolute=0.1) == 0.0
    assert score("0", "0", relative=0.5) == 1.0 and score("0.1", "0", relative=0.5) == 0.0
    assert score("-95", "-100", relative=0.05) == 1.0
    assert score("9", [8, 9]) == 1.0


@pytest.mark.parametrize(
    "answer", [None, "", [], "eight", "8 apples", float("nan"), float("inf"), {"a": 1}, [8, None]]
)
def test_an_unusable_sample_is_not_scored(answer: object) -> None:
    for said in ("8", "", "junk"):
        with pytest.raises(ValueError, match="the sample"):
            score(said, answer)
        with pytest.raises(ValueError, match="the sample"):
            numeric_closeness(said, answer)


@pytest.mark.parametrize("options", [{"absolute": -1}, {"relative": float("nan")}, {"unit": "cubit"}])
def test_a_wrong_option_is_named(options: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match=next(iter(options))):
        score("8", 8, **options)


def test_chart_qa_s_relaxed_accuracy_on_two_hundred_cases() -> None:
    """|prediction − target| / |target| ≤ 0.05, and equality for a target of 0."""
    draw = random.Random(0)
    for _ in range(200):
        target = draw.choice([0, draw.randint(-500, 500), draw.randint(1, 10**6) / 8])
        said = draw.choice([target, target * draw.choice([0.9, 0.94, 0.96, 1.04, 1.06, -1]), 1])
        theirs = abs(said - target) / abs(target) <= 0.05 if target else said == target
        assert score(repr(said), repr(target), relative=0.05) == float(theirs), (said, target)


def test_video_r1_s_regression_on_two_hundred_cases() -> None:
    """1 − min(1, (|p − g| + 1e-9) / (|g| + 1e-9)): ours without the 1e-9."""
    draw = random.Random(1)
    for _ in range(200):
        target, said = draw.uniform(-50, 50), draw.uniform(-50, 50)
        theirs = 1 - min(1.0, (abs(said - target) + 1e-9) / (abs(target) + 1e-9))
        assert numeric_closeness(repr(said), repr(target), part="whole") == pytest.approx(theirs, abs=1e-6)


def test_vlm_r1_s_numeric_match_on_two_hundred_cases() -> None:
    """float(said) = float(answer) where both are plain numbers."""
    draw = random.Random(2)
    spellings = ["{}", "{:.1f}", "{:+}", " {}", "{:e}", "{:06d}"]
    for _ in range(200):
        said, right = draw.randint(0, 9), draw.randint(0, 9)
        text, answer = draw.choice(spellings).format(said), draw.choice(spellings).format(right)
        assert score(text, answer) == float(float(text) == float(answer)), (text, answer)


SMALL = st.fractions(min_value=-(10**6), max_value=10**6, max_denominator=10**6)


@given(SMALL, SMALL)
def test_closeness_is_bounded_and_the_same_in_every_unit(said: Fraction, right: Fraction) -> None:
    text, answer = (f"{x.numerator}/{x.denominator}" for x in (said, right))
    value = numeric_closeness(text, answer, part="whole")
    assert 0.0 <= value <= 1.0 and (said != right or value == 1.0)
    assert numeric_closeness(f"{text} m", f"{answer} m", part="whole") == value
    in_mm = said * 1000
    text_mm = f"{in_mm.numerator}/{in_mm.denominator} mm"
    assert numeric_closeness(text_mm, f"{answer} m", part="whole") == value


@given(st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**12), max_value=10**12, places=4))
def test_a_number_is_read_back(number: object) -> None:
    found = read_quantity(f"{number:f}")
    assert found is not None and found.number == Fraction(str(number))


@given(st.text(max_size=40))
def test_no_text_raises(text: str) -> None:
    read_quantity(text)
    assert find_unit(text) is None or text.strip()
