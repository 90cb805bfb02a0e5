"""visual/charts: reading bar charts, line charts and pies."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

import numpy as np

from vlrl.envs.visual.answers import Choice, Number, TaskAnswer
from vlrl.envs.visual.drawing.plots import NUM_STEPS, TINTS, Chart, bars, lines, pie
from vlrl.envs.visual.question import Question, QuestionEnv

NAMES: Sequence[Sequence[str]] = (
    ("Jan", "Feb", "Mar", "Apr", "May", "Jun"),
    ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat"),
    ("2019", "2020", "2021", "2022", "2023", "2024"),
    ("fig", "pear", "plum", "lime", "kiwi", "nut"),
    ("Rome", "Oslo", "Lima", "Bern", "Riga", "Kyiv"),
)
SERIES = ("north", "south", "west", "east")
STEPS: Sequence[float] = (1, 2, 5, 10, 20, 50, 100)

Asked = tuple[str, TaskAnswer]


class Charts(QuestionEnv):
    """Shows a chart and asks for a number or a name in it.

    Levels: 1, 3 or 4 bars, one's value, and which is highest or lowest; 2, to 6 bars or dots on a line; 3,
    with values between the grid lines too, and pies with their percentages, sums and differences of two; 4,
    two series with a legend, differences between them; 5, three series, totals and ranges of one, and how
    often one is above another.

    Values are on grid lines or in the middle between two, and differ where they are compared. Reward 1 for
    the right number or name, else 0. Chance scores 0.2 at level 1, 0.15 at 2, about 0.1 above.
    """

    name: ClassVar[str] = "visual/charts"

    def ask(self, rng: np.random.Generator, level: int) -> Question:
        """A chart, and one of the level's kinds of question."""
        kinds = _KINDS[level]
        kind = kinds[int(rng.integers(len(kinds)))]
        chart = _draw_shares(rng) if kind == "pie" else _draw_values(rng, level)
        asks = _ASKS_OF_PIES if kind == "pie" else _ASKS[level]
        text, answer = asks[int(rng.integers(len(asks)))](rng, chart)
        image = _PAINTERS[kind](self.image_size, chart, int(rng.integers(len(TINTS))))
        return Question(text, answer, [image], metadata={"kind": kind, "chart": chart})


def _draw_values(rng: np.random.Generator, level: int) -> Chart:
    """Values of a series differ, and so do those of a category."""
    num_series = {4: 2, 5: 3}.get(level, 1)
    num_names = int(rng.integers(*_NUM_NAMES[level], endpoint=True))
    names = NAMES[int(rng.integers(len(NAMES)))][:num_names]
    step, parts = float(STEPS[int(rng.integers(len(STEPS)))]), 1 if level < 3 else 2
    while True:
        marks = [rng.permutation(np.arange(1, NUM_STEPS * parts + 1))[:num_names] for _ in range(num_series)]
        if all(len(set(column)) == num_series for column in zip(*marks, strict=True)):
            break
    values = [(row * step / parts).tolist() for row in marks]
    series = rng.permutation(list(SERIES))[:num_series].tolist()
    return Chart(names, series, values, step)


def _draw_shares(rng: np.random.Generator) -> Chart:
    """Percentages that add up to 100 and differ by two at least."""
    names = NAMES[int(rng.integers(len(NAMES)))]
    while True:
        shares = rng.integers(9, 45, int(rng.integers(2, 5))).tolist()
        shares.append(100 - sum(shares))
        if shares[-1] >= 9 and min(np.diff(np.sort(shares))) >= 2:
            return Chart(names[: len(shares)], ("",), [shares])


def _number(chart: Chart, value: float, num_added: int = 1) -> Number:
    """Guesses are drawn from what a sum of so many values may be."""
    grain = chart.step / 2
    return Number(value, 0, num_added * NUM_STEPS * chart.step, grain=grain)


def _two(rng: np.random.Generator, chart: Chart) -> tuple[str, str]:
    one, other = rng.permutation(list(chart.names))[:2].tolist()
    return one, other


def _value(rng: np.random.Generator, chart: Chart) -> Asked:
    name = chart.names[int(rng.integers(len(chart.names)))]
    index = int(rng.integers(len(chart.series)))
    of = f"{chart.series[index]} in {name}" if len(chart.series) > 1 else name
    return f"What is the value of {of}? Answer with a number.", _number(chart, chart.value(name, index))


def _extreme(rng: np.random.Generator, chart: Chart) -> Asked:
    word, sign = (("highest", 1), ("lowest", -1))[int(rng.integers(2))]
    index = int(rng.integers(len(chart.series)))
    whose = f"is {chart.series[index]} {word}" if len(chart.series) > 1 else f"is the value {word}"
    name = max(chart.names, key=lambda name: sign * chart.value(name, index))
    text = f"Where {whose}? Answer with one of: {', '.join(chart.names)}."
    return text, Choice(name, chart.names)


def _sum(rng: np.random.Generator, chart: Chart) -> Asked:
    one, other = _two(rng, chart)
    total = chart.value(one) + chart.value(other)
    return f"What do {one} and {other} add up to? Answer with a number.", _number(chart, total, 2)


def _difference(rng: np.random.Generator, chart: Chart) -> Asked:
    one, other = _two(rng, chart)
    if chart.value(one) < chart.value(other):
        one, other = other, one
    text = f"How much more is {one} than {other}? Answer with a number."
    return text, _number(chart, chart.value(one) - chart.value(other))


def _gap(rng: np.random.Generator, chart: Chart) -> Asked:
    """Question about the difference between two series."""
    name = chart.names[int(rng.integers(len(chart.names)))]
    one, other = rng.permutation(len(chart.series))[:2].tolist()
    gap = abs(chart.value(name, one) - chart.value(name, other))
    text = f"How far apart are {chart.series[one]} and {chart.series[other]} in {name}? Answer with a number."
    return text, _number(chart, gap)


def _total(rng: np.random.Generator, chart: Chart) -> Asked:
    index = int(rng.integers(len(chart.series)))
    text = f"What do all values of {chart.series[index]} add up to? Answer with a number."
    return text, _number(chart, sum(chart.values[index]), len(chart.names))


def _range(rng: np.random.Generator, chart: Chart) -> Asked:
    index = int(rng.integers(len(chart.series)))
    values = chart.values[index]
    text = f"By how much do the highest and the lowest value of {chart.series[index]} differ?"
    return f"{text} Answer with a number.", _number(chart, max(values) - min(values))


def _times_above(rng: np.random.Generator, chart: Chart) -> Asked:
    one, other = rng.permutation(len(chart.series))[:2].tolist()
    right = sum(a > b for a, b in zip(chart.values[one], chart.values[other], strict=True))
    text = f"How often is {chart.series[one]} above {chart.series[other]}? Answer with a whole number."
    return text, Number(right, 0, len(chart.names))


def _percentage(rng: np.random.Generator, chart: Chart) -> Asked:
    """Question about two slices: what they have together, or by how much they differ."""
    one, other = _two(rng, chart)
    if rng.integers(2):
        text = f"How many percent do {one} and {other} have together? Answer with a number, without a sign."
        return text, Number(chart.value(one) + chart.value(other), 18, 91)
    if chart.value(one) < chart.value(other):
        one, other = other, one
    text = f"By how many percentage points is {one} larger than {other}?"
    return f"{text} Answer with a number, without a sign.", Number(
        chart.value(one) - chart.value(other), 2, 60
    )


_NUM_NAMES: Mapping[int, tuple[int, int]] = {1: (3, 4), 2: (4, 6), 3: (5, 6), 4: (3, 5), 5: (4, 6)}
_KINDS: Mapping[int, Sequence[str]] = {
    1: ("bars",),
    2: ("bars", "lines"),
    3: ("bars", "lines", "pie"),
    4: ("bars", "lines"),
    5: ("bars", "lines"),
}
_ASKS: Mapping[int, Sequence[Callable[[np.random.Generator, Chart], Asked]]] = {
    1: (_value, _extreme),
    2: (_value, _extreme),
    3: (_value, _sum, _difference),
    4: (_value, _extreme, _gap),
    5: (_gap, _total, _range, _times_above),
}
_ASKS_OF_PIES = (_extreme, _percentage)
_PAINTERS = {"bars": bars, "lines": lines, "pie": pie}
