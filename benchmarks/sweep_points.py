"""What step_sweep.py varies, what it has measured so far, and how fast that grows."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from cases import CASES, Case

BASE = replace(CASES["b"], groups=1)
"""12 M parameters, one prompt of 300 tokens with an image, 8 completions of at most 48 tokens."""
TURN = replace(CASES["c"], turns=1)
"""8 episodes; a turn shows an image of 64 tokens with 16 of text, and at most 24 are generated."""
MILLIONS = {"tiny": 2.0, "11m": 11.6, "mid": 48.9, "200m": 208.0}
"""Parameters by shape."""


@dataclass(frozen=True)
class Point:
    """One size of one quantity: `size` is on the curve's axis, `case` is what is run."""

    size: float
    case: Case


@dataclass(frozen=True)
class Curve:
    """One quantity varied, the others fixed.

    Attributes:
        name: of the quantity.
        points: of the trainer alone, by size.
        whole: those of whole steps beside TRL, which may take the quantity from something else.
    """

    name: str
    points: tuple[Point, ...]
    whole: tuple[Point, ...] = ()

    @property
    def title(self) -> str:
        """The name in words."""
        return self.name.replace("_", " ")


def _points(sizes: Iterable[float], base: Case, field: str, less: int = 0) -> tuple[Point, ...]:
    return tuple(Point(size, replace(base, **{field: int(size) - less})) for size in sizes)


CURVES = (
    Curve(
        "prompt_tokens",  # by text; in whole steps by a larger image
        _points((300, 600, 1200, 2400, 4800), BASE, "text_tokens", less=256),
        tuple(Point(tokens + 38, replace(BASE, image_tokens=tokens)) for tokens in (256, 1024, 3600)),
    ),
    Curve(
        "completions",
        _points((4, 8, 16, 32, 64), BASE, "group_size"),
        _points((8, 32), BASE, "group_size"),
    ),
    Curve("images", _points((1, 2, 4, 8, 16), BASE, "images"), _points((1, 4), BASE, "images")),
    Curve("turns", _points((1, 2, 5, 10, 20), TURN, "turns")),
    Curve(
        "completion_tokens",
        _points((48, 128, 256, 512, 1024), BASE, "completion_tokens"),
        _points((48, 256), BASE, "completion_tokens"),
    ),
    Curve(
        "million_parameters",
        tuple(Point(size, replace(BASE, shape=shape)) for shape, size in MILLIONS.items()),
        tuple(Point(MILLIONS[shape], replace(BASE, shape=shape)) for shape in ("tiny", "11m", "mid")),
    ),
)
HOST_CASE = replace(CASES["c"], groups=8, image_tokens=4, text_tokens=76)
"""64 episodes; images are small, since packing passes their patches on as they are."""
HOST = tuple(
    Curve(name, _points((1, 5, 10, 20), replace(HOST_CASE, alike=alike), "turns"))
    for name, alike in (("turns_all_differ", 0.0), ("turns_half_alike", 0.5))
)


class Points:
    """Results in a file of JSON lines, found by what was run: curves share points."""

    def __init__(self, path: Path) -> None:
        self._path = path
        lines = path.read_text().splitlines() if path.exists() else []
        records = [json.loads(line) for line in lines]
        self._records = {(r["part"], _key(r["case"])): r for r in records}

    def find(self, part: str, case: Case) -> dict[str, Any] | None:
        """The record of a point, if it was measured."""
        return self._records.get((part, _key(asdict(case))))

    def add(self, part: str, case: Case, record: Mapping[str, Any]) -> None:
        """Keep a point; what was there of it counts no more."""
        whole = {"part": part, "case": asdict(case), **record}
        with self._path.open("a") as file:
            file.write(json.dumps(whole) + "\n")
        self._records[part, _key(whole["case"])] = whole

    def missing(self, part: str, points: Sequence[Point]) -> list[Point]:
        """Those not measured yet."""
        return [point for point in points if self.find(part, point.case) is None]


def _key(case: Mapping[str, Any]) -> str:
    return json.dumps(case, sort_keys=True)


def exponents(sizes: Sequence[float], values: Sequence[float]) -> list[float]:
    """Slopes of log value against log size between neighbours: 1 is linear, 2 quadratic."""
    pairs = list(zip(sizes, values, strict=True))
    return [math.log(v / v0) / math.log(s / s0) for (s0, v0), (s, v) in pairwise(pairs)]


def last_exponent(sizes: Sequence[float], values: Sequence[float | None]) -> float | None:
    """The slope between the last two points that have a value; None if there are fewer."""
    known = [(size, value) for size, value in zip(sizes, values, strict=True) if value]
    return exponents(*zip(*known[-2:], strict=True))[-1] if len(known) > 1 else None
