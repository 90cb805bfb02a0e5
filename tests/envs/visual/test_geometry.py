"""Figures are true to scale: labelled angles and lengths measure what they say, the unknown the answer."""

from __future__ import annotations

import math
import re
from typing import Any

import pytest

from vlrl.environment.open import open_env
from vlrl.envs.visual.drawing.figures import Figure

NUM_SEEDS = 250


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str, float]]:
    """(angle or side, its label, what it measures in degrees or units) of what is drawn."""
    found: list[tuple[str, str, float]] = []
    angle, side = Figure.angle, Figure.side

    def spy_angle(self: Figure, vertex: Any, one: Any, other: Any, text: str) -> None:
        ways = [math.atan2(place[1] - vertex[1], place[0] - vertex[0]) for place in (one, other)]
        turn = math.degrees(abs(ways[0] - ways[1]))
        found.append(("angle", text, min(turn, 360 - turn)))
        angle(self, vertex, one, other, text)

    def spy_side(self: Figure, start: Any, end: Any, text: str, away: Any) -> None:
        found.append(("side", text, math.dist(start, end)))
        side(self, start, end, text, away)

    monkeypatch.setattr(Figure, "angle", spy_angle)
    monkeypatch.setattr(Figure, "side", spy_side)
    return found


def test_figures_measure_what_they_say(measured: list[tuple[str, str, float]]) -> None:
    env: Any = open_env("visual/geometry", {"image_size": 96})
    problems = set()
    for level in range(1, env.num_levels + 1):
        for seed in range(NUM_SEEDS):
            measured.clear()
            env.reset({"level": level}, seed)
            question = env.question
            place = f"level {level} seed {seed} {question.metadata['problem']}"
            problems.add(question.metadata["problem"])
            known = float(question.answer.text)
            said = [
                (kind, known if label == "x" else float(label.rstrip("°")), size)
                for kind, label, size in measured
            ]
            for _, value, size in (item for item in said if item[0] == "angle"):
                assert size == pytest.approx(value, abs=0.01), place
            scales = [size / value for kind, value, size in said if kind == "side"]
            assert not scales or max(scales) == pytest.approx(min(scales), rel=1e-6), place
            asks_for_x = re.search(r"\bx\b", question.text) is not None
            assert asks_for_x == any(label == "x" for _, label, _ in measured), place
            assert known == int(known) > 0, place
    assert len(problems) == 16


def test_areas_and_perimeters_follow_from_the_labels(measured: list[tuple[str, str, float]]) -> None:
    env: Any = open_env("visual/geometry", {"image_size": 96})
    seen = set()
    for level in range(1, env.num_levels + 1):
        for seed in range(NUM_SEEDS):
            measured.clear()
            env.reset({"level": level}, seed)
            text, right = env.question.text, float(env.question.answer.text)
            lengths = [float(label) for kind, label, _ in measured if kind == "side" and label != "x"]
            if "perimeter of the rectangle" in text:
                expected = 2 * sum(lengths)
            elif "area of the rectangle" in text:
                expected = lengths[0] * lengths[1]
            elif "area of the triangle" in text:
                expected = lengths[0] * lengths[1] / 2
            elif "area of the figure" in text:
                wide, high, cut_high, cut_wide = lengths
                expected = wide * high - cut_high * cut_wide
            else:
                continue
            seen.add(text)
            assert right == expected, text
    assert len(seen) == 4
