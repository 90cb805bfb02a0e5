"""Charts, gauges and clocks are read back from pixels; questions are answered again from their words."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest

from vlrl.environment.open import open_env
from vlrl.envs.visual.drawing.draw import INK, UNITS
from vlrl.envs.visual.drawing.plots import NUM_STEPS, TINTS, Chart, bars, lines, pie
from vlrl.envs.visual.question import Question
from vlrl.envs.visual.questions.clocks import ClockTime
from vlrl.types import ByteArray

NUM_SEEDS = 100
SIZE = 448
NAMES = ("Jan", "Feb", "Mar", "Apr")


def asked(name: str) -> list[Question]:
    env: Any = open_env(name, {"image_size": 96})
    found = []
    for level in range(1, env.num_levels + 1):
        for seed in range(NUM_SEEDS):
            env.reset({"level": level}, seed)
            found.append(env.question)
    return found


def like(pixels: ByteArray, colour: tuple[int, int, int], within: int = 30) -> Any:
    """[height, width] True where an image has about this colour."""
    return np.abs(pixels.astype(int) - np.array(colour)).sum(-1) < within


def grid_rows(pixels: ByteArray) -> tuple[float, float]:
    """The rows of a chart's zero line and of its uppermost grid line, found right of all bars and dots."""
    column = pixels[:, int(215 * SIZE / UNITS), :].astype(int).sum(-1)
    marks = np.flatnonzero(column < 720)
    return float(marks[-1]), float(marks[0])


@pytest.mark.parametrize("values", [(10.0, 60.0, 35.0, 5.0), (55.0, 15.0, 20.0, 40.0)])
def test_bars_reach_their_values(values: tuple[float, ...]) -> None:
    pixels = bars(SIZE, Chart(NAMES, ("a",), [values], 10), 0)
    zero, top = grid_rows(pixels)
    for position, value in enumerate(values):
        column = int((34 + (position + 0.5) * 182 / 4) * SIZE / UNITS)
        highest = np.flatnonzero(like(pixels, TINTS[0])[:, column])[0]
        assert (zero - highest) / (zero - top) * NUM_STEPS * 10 == pytest.approx(value, abs=1)


@pytest.mark.parametrize("values", [(10.0, 60.0, 35.0, 5.0), (55.0, 15.0, 20.0, 40.0)])
def test_dots_lie_at_their_values(values: tuple[float, ...]) -> None:
    pixels = lines(SIZE, Chart(NAMES, ("a",), [values], 10), 1)
    zero, top = grid_rows(pixels)
    for position, value in enumerate(values):
        column = int((34 + (position + 0.5) * 182 / 4) * SIZE / UNITS)
        rows = np.flatnonzero(like(pixels, TINTS[1])[:, column])
        assert (zero - rows.mean()) / (zero - top) * NUM_STEPS * 10 == pytest.approx(value, abs=1)


def test_slices_have_their_shares_of_the_pie() -> None:
    shares = (50, 31, 19)
    pixels = pie(SIZE, Chart(NAMES[:3], ("",), [shares]), 0)
    disc = pixels[:, : SIZE * 150 // 224].reshape(-1, 3)
    colours, counts = np.unique(disc, axis=0, return_counts=True)
    order = np.argsort(-counts)
    assert (colours[order[0]] == 255).all()
    slices = counts[order[1:4]]
    assert slices / slices.sum() * 100 == pytest.approx(shares, abs=1.5)


def test_answers_about_charts_are_right() -> None:
    for question in asked("visual/charts"):
        chart: Chart = question.metadata["chart"]
        assert question.answer.text == chart_answer(question.text, chart), question.text


def chart_answer(text: str, chart: Chart) -> str:
    """A second solver, from the words."""
    pairs = zip(chart.series, chart.values, strict=True)
    rows = {series: dict(zip(chart.names, row, strict=True)) for series, row in pairs}
    only = next(iter(rows.values()))
    name = "|".join(chart.names)
    series = "|".join(filter(None, chart.series))
    if match := re.match(rf"What is the value of (?:({series}) in )?({name})\?", text):
        return f"{rows.get(match[1], only)[match[2]]:g}"
    if match := re.match(rf"Where is (the value|{series}) (highest|lowest)\?", text):
        row = rows.get(match[1], only)
        (right,) = (n for n in row if row[n] == (max if match[2] == "highest" else min)(row.values()))
        return right
    if match := re.match(rf"(?:What do|How many percent do) ({name}) and ({name}) (?:add|have)", text):
        return f"{only[match[1]] + only[match[2]]:g}"
    more = "(?:How much more|By how many percentage points)"
    if match := re.match(rf"{more} is ({name}) (?:larger )?than ({name})\?", text):
        return f"{only[match[1]] - only[match[2]]:g}"
    if match := re.match(rf"How far apart are ({series}) and ({series}) in ({name})\?", text):
        return f"{abs(rows[match[1]][match[3]] - rows[match[2]][match[3]]):g}"
    if match := re.match(rf"What do all values of ({series}) add up to\?", text):
        return f"{sum(rows[match[1]].values()):g}"
    if match := re.match(rf"By how much do the highest and the lowest value of ({series}) differ\?", text):
        return f"{max(rows[match[1]].values()) - min(rows[match[1]].values()):g}"
    match = re.match(rf"How often is ({series}) above ({series})\?", text)
    assert match, text
    return str(sum(rows[match[1]][n] > rows[match[2]][n] for n in chart.names))


def test_values_that_are_compared_differ_by_half_a_grid_line() -> None:
    for question in asked("visual/charts"):
        chart: Chart = question.metadata["chart"]
        least = 2 if question.metadata["kind"] == "pie" else chart.step / 2
        for values in (*chart.values, *zip(*chart.values, strict=True)):
            assert len(values) == 1 or min(np.diff(np.sort(values))) >= least
        if question.metadata["kind"] == "pie":
            assert sum(chart.values[0]) == 100
        else:
            marks = np.array(chart.values) / chart.step * 2
            assert (marks == marks.round()).all()
            assert marks.max() <= 2 * NUM_STEPS


def test_answers_about_tables_are_right() -> None:
    for question in asked("visual/tables"):
        table = question.metadata["table"]
        cells = {
            row: dict(zip(table.columns, values, strict=True))
            for row, values in zip(table.rows, table.values, strict=True)
        }
        assert question.answer.text == table_answer(question.text, cells), question.text


def table_answer(text: str, cells: dict[str, dict[str, int]]) -> str:
    """A second solver, from the words."""
    if match := re.match(r"How many (\w+) does (\w+) have\?", text):
        return str(cells[match[2]][match[1]])
    if match := re.match(r"Who has the (most|fewest) (\w+)\?", text):
        best = (max if match[1] == "most" else min)(row[match[2]] for row in cells.values())
        (right,) = (name for name in cells if cells[name][match[2]] == best)
        return right
    if match := re.match(r"How many more (\w+) does (\w+) have than (\w+)\?", text):
        return str(cells[match[2]][match[1]] - cells[match[3]][match[1]])
    if match := re.match(r"How many (\w+) do (\w+), (\w+) and (\w+) have together\?", text):
        return str(sum(cells[match[index]][match[1]] for index in (2, 3, 4)))
    if match := re.match(r"What do all numbers of (\w+) add up to\?", text):
        return str(sum(cells[match[1]].values()))
    if match := re.match(r"How many of them have more than (\d+) (\w+)\?", text):
        return str(sum(row[match[2]] > int(match[1]) for row in cells.values()))
    match = re.match(r"Of those with more than (\d+) (\w+), who has the fewest (\w+)\?", text)
    assert match, text
    among = [name for name in cells if cells[name][match[2]] > int(match[1])]
    fewest = min(cells[name][match[3]] for name in among)
    (right,) = (name for name in among if cells[name][match[3]] == fewest)
    return right


def test_gauges_stand_on_a_mark_and_are_read_as_it_says() -> None:
    for question in asked("visual/gauges"):
        values = [scale.low + scale.mark * scale.step / scale.parts for scale in question.metadata["scales"]]
        right = values[0] if len(values) == 1 else values[1] - values[0]
        assert float(question.answer.text) == pytest.approx(right, abs=1e-6)
        grain = question.metadata["scales"][0].grain
        assert question.answer.grade(f"{right + grain / 4:.6f}") == 1
        assert question.answer.grade(f"{right + grain / 2:.6f}") == 0


@pytest.mark.parametrize(("kind", "axis"), [("thermometer", 0), ("ruler", 1)])
def test_columns_and_bars_end_at_the_mark(kind: str, axis: int) -> None:
    """The coloured part fills the share that the answer says, between the outermost numbered marks."""
    env: Any = open_env("visual/gauges", {"image_size": SIZE, "level": 3})
    ends = {"thermometer": (UNITS - 46, 18), "ruler": (24, UNITS - 24)}[kind]
    seen = 0
    for seed in range(60):
        pixels = np.asarray(env.reset({}, seed).images[0])
        if kind not in env.question.text:
            continue
        (scale,) = env.question.metadata["scales"]
        if not scale.mark > 3:
            continue
        line = pixels[:, int(100 * SIZE / UNITS)] if axis == 0 else pixels[int(100 * SIZE / UNITS)]
        coloured = np.flatnonzero(np.ptp(line.astype(int), axis=-1) > 60)
        reach = (coloured[0] if axis == 0 else coloured[-1]) * UNITS / SIZE
        share = (reach - ends[0]) / (ends[1] - ends[0])
        assert share * scale.num_marks == pytest.approx(scale.mark, abs=0.35)
        seen += 1
    assert seen > 5


def test_the_hands_of_clocks_point_where_they_should() -> None:
    env: Any = open_env("visual/clocks", {"image_size": SIZE, "level": 4})
    for seed in range(60):
        pixels = np.asarray(env.reset({}, seed).images[0])
        seconds = env.question.metadata["seconds"]
        for turn, radius in ((seconds / 43_200, 30), (seconds % 3600 / 3600, 55)):
            angle = math.radians(360 * turn - 90)
            x = int((112 + radius * math.cos(angle)) * SIZE / UNITS)
            y = int((112 + radius * math.sin(angle)) * SIZE / UNITS)
            assert like(pixels[y - 1 : y + 2, x - 1 : x + 2], INK, 150).any(), seed
        angles = np.radians(np.arange(360))
        ring = zip(112 + 55 * np.cos(angles), 112 + 55 * np.sin(angles), strict=True)
        dark = [a for a, (x, y) in enumerate(ring) if like(pixels[int(2 * y), int(2 * x)], INK, 150)]
        wanted = (360 * (seconds % 3600 / 3600) - 90) % 360
        assert dark
        assert all(abs((a - wanted + 180) % 360 - 180) < 5 for a in dark)  # at 55 units only the minute hand


@pytest.mark.parametrize(
    ("text", "score"),
    [
        *(("3:05", 1.0), ("03:05", 1.0), ("15:05", 1.0), ("3:06", 0.0), ("4:05", 0.0)),
        *(
            ("3:5", None),
            ("3.05", None),
            ("3:65", None),
            ("31:05", None),
            ("3:05:00", None),
            ("3:05 pm", None),
        ),
    ],
)
def test_times_are_graded(text: str, score: float | None) -> None:
    assert ClockTime(3 * 3600 + 5 * 60, 60).grade(text) == score


def test_times_with_seconds_want_seconds() -> None:
    noon = ClockTime(7, 1)
    assert noon.text == "12:00:07"
    assert [noon.grade(text) for text in ("12:00:07", "0:00:07", "12:00:08", "12:00")] == [
        1.0,
        1.0,
        0.0,
        None,
    ]
