"""Rewards that compare numbers: within a tolerance, or by how near they are; units are converted."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from vlrl.errors import ConfigError
from vlrl.parsing.extract import Part, references, scored_text
from vlrl.parsing.units import Quantity, Unit, find_unit, read_quantity
from vlrl.scoring.author import reward


@reward(range=(0.0, 1.0))
def numeric(
    completion: str,
    answer: Any,
    *,
    absolute: float = 0.0,
    relative: float = 0.0,
    unit: str = "",
    part: Part = "answer",
) -> float:
    """1 if the completion is one number and near enough to the answer, else 0.

    [|x − a| ≤ max(absolute, relative·|a|)], computed in fractions, so 0.1 + 0.2 is 0.3 and the bound itself
    is near enough. Range {0, 1}; of several references any will do. Source: exact match of numbers; relative
    0.05 is ChartQA's relaxed accuracy (Masry et al. 2022, arXiv 2203.10244). Words around the number,
    several numbers, ranges, sums, nan, inf, other scripts' digits and empty text score 0.

    Units are those of `vlrl.parsing.units`: a unit in the completion is converted to the answer's and must
    measure the same; one left out is taken to be the answer's; one that the answer has not scores 0. Percent
    is a hundredth: 5% is 0.05, and is not 5.

    Args:
        completion: what the model wrote.
        answer: a number or its text, or a list of them.
        absolute: tolerance in the answer's unit.
        relative: tolerance as a share of the answer.
        unit: of answers that are written without.
        part: what is compared; see `vlrl.parsing.extract`.

    Raises:
        ValueError: if the sample has no answer, or one that is not a number.
        ConfigError: for a negative tolerance or an unknown unit.
    """
    bounds = [_tolerance("absolute", absolute), _tolerance("relative", relative)]
    return float(
        any(
            abs(said - right) <= max(bounds[0], bounds[1] * abs(right))
            for said, right in _pairs(completion, answer, unit, part)
        )
    )


@reward(range=(0.0, 1.0))
def numeric_closeness(completion: str, answer: Any, *, unit: str = "", part: Part = "answer") -> float:
    """max(0, 1 − |x − a| / |a|); for a = 0, 1 if x = 0, else 0.

    Range [0, 1]. Read as `numeric` reads it. Source: Video-R1's regression reward (arXiv 2503.21776), without
    the 1e-9 it adds. Everything that is not one number scores 0; so does 0, unless it is right.

    Raises:
        ValueError: if the sample has no answer, or one that is not a number.
        ConfigError: for an unknown unit.
    """
    best = Fraction(0)
    for said, right in _pairs(completion, answer, unit, part):
        best = max(best, 1 - abs(said - right) / abs(right) if right else Fraction(said == right))
    return float(best)


def _pairs(completion: str, answer: Any, unit: str, part: Part) -> list[tuple[Fraction, Fraction]]:
    """(the completion's number, the reference's) in the reference's unit, for each that can be compared."""
    default = _unit(unit)
    right = [_reference(text) for text in references(answer)]
    text = scored_text(completion, part)
    said = read_quantity(text) if text is not None else None
    if said is None:
        return []
    pairs = [(said.measured_in(quantity.unit or default), quantity.number) for quantity in right]
    return [(number, reference) for number, reference in pairs if number is not None]


def _reference(text: str) -> Quantity:
    quantity = read_quantity(text)
    if quantity is None:
        raise ValueError(f"the sample's answer {text!r:.60} is not a number (with a known unit)")
    return quantity


def _unit(name: str) -> Unit | None:
    unit = find_unit(name) if name else None
    if name and unit is None:
        raise ConfigError(f"unit={name!r} is not in the table of vlrl.parsing.units")
    return unit


def _tolerance(name: str, value: float) -> Fraction:
    if not math.isfinite(value) or value < 0:
        raise ConfigError(f"{name}={value}; a tolerance is a number of at least 0")
    return Fraction(str(value))
