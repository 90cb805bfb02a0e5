"""visual/tables: reading a table of numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from vlrl.envs.visual.answers import Choice, Number, TaskAnswer
from vlrl.envs.visual.drawing.draw import COLOURS, FAINT, UNITS, WHITE, Colour, Sketch, shade
from vlrl.envs.visual.question import Question, QuestionEnv
from vlrl.types import ByteArray

ROWS = ("Ada", "Ben", "Cleo", "Dan", "Eva", "Finn", "Gus", "Hana", "Ivy", "Jon")
COLUMNS = ("figs", "eggs", "nuts", "pens", "cups", "keys")
LOWEST, HIGHEST = 10, 99

Asked = tuple[str, TaskAnswer]


@dataclass(frozen=True, slots=True)
class Table:
    """Names and numbers; those of a column differ.

    Attributes:
        rows: [num_rows] names.
        columns: [num_columns] names.
        values: [num_rows][num_columns].
    """

    rows: Sequence[str]
    columns: Sequence[str]
    values: Sequence[Sequence[int]]

    def column(self, index: int) -> list[int]:
        """The numbers of a column."""
        return [row[index] for row in self.values]


class Tables(QuestionEnv):
    """Shows a table of two-digit numbers and asks for one of them, or for what follows from several.

    Levels: 1, 3 rows and 2 columns, what stands in a field; 2, 4 by 3, and who has most or fewest; 3, 5 by 3,
    differences and totals of three rows; 4, 6 by 4, how many are above a number, and totals of a row; 5, 8
    by 4, who has fewest of one among those who have more than so many of another.

    Reward 1 for the right number or name, else 0. Chance scores 0.01 at level 1, 0.13 at 2, about 0.1 above.
    """

    name: ClassVar[str] = "visual/tables"

    def ask(self, rng: np.random.Generator, level: int) -> Question:
        """A table, and one of the level's kinds of question."""
        num_rows, num_columns = _SIZES[level]
        rows = rng.permutation(list(ROWS))[:num_rows].tolist()
        columns = rng.permutation(list(COLUMNS))[:num_columns].tolist()
        numbers = np.arange(LOWEST, HIGHEST + 1)
        values = np.stack([rng.permutation(numbers)[:num_rows] for _ in columns], axis=1).tolist()
        table = Table(rows, columns, values)
        asks = _ASKS[level]
        text, answer = asks[int(rng.integers(len(asks)))](rng, table)
        tint = tuple(COLOURS.values())[int(rng.integers(len(COLOURS)))]
        return Question(text, answer, [_draw(self.image_size, table, tint)], metadata={"table": table})


def _pick(rng: np.random.Generator, table: Table) -> tuple[int, int]:
    return int(rng.integers(len(table.rows))), int(rng.integers(len(table.columns)))


def _field(rng: np.random.Generator, table: Table) -> Asked:
    row, column = _pick(rng, table)
    text = f"How many {table.columns[column]} does {table.rows[row]} have? Answer with a number."
    return text, Number(table.values[row][column], LOWEST, HIGHEST)


def _most(rng: np.random.Generator, table: Table) -> Asked:
    _, column = _pick(rng, table)
    word, pick = (("most", max), ("fewest", min))[int(rng.integers(2))]
    numbers = table.column(column)
    name = table.rows[numbers.index(pick(numbers))]
    text = f"Who has the {word} {table.columns[column]}? Answer with one of: {', '.join(table.rows)}."
    return text, Choice(name, table.rows)


def _difference(rng: np.random.Generator, table: Table) -> Asked:
    one, other = rng.permutation(len(table.rows))[:2].tolist()
    _, column = _pick(rng, table)
    if table.values[one][column] < table.values[other][column]:
        one, other = other, one
    gap = table.values[one][column] - table.values[other][column]
    text = f"How many more {table.columns[column]} does {table.rows[one]} have than {table.rows[other]}? "
    return f"{text}Answer with a number.", Number(gap, 1, HIGHEST - LOWEST)


def _total_of_three(rng: np.random.Generator, table: Table) -> Asked:
    chosen = sorted(rng.permutation(len(table.rows))[:3].tolist())
    _, column = _pick(rng, table)
    names = [table.rows[row] for row in chosen]
    total = sum(table.values[row][column] for row in chosen)
    text = f"How many {table.columns[column]} do {names[0]}, {names[1]} and {names[2]} have together? "
    return f"{text}Answer with a number.", Number(total, 3 * LOWEST, 3 * HIGHEST)


def _total_of_row(rng: np.random.Generator, table: Table) -> Asked:
    row, _ = _pick(rng, table)
    num = len(table.columns)
    text = f"What do all numbers of {table.rows[row]} add up to? Answer with a number."
    return text, Number(sum(table.values[row]), num * LOWEST, num * HIGHEST)


def _how_many_above(rng: np.random.Generator, table: Table) -> Asked:
    _, column = _pick(rng, table)
    ordered = sorted(table.column(column))
    right = int(rng.integers(1, len(ordered)))
    limit = ordered[-right - 1]
    text = f"How many of them have more than {limit} {table.columns[column]}? Answer with a whole number."
    return text, Number(right, 1, len(ordered) - 1)


def _fewest_among(rng: np.random.Generator, table: Table) -> Asked:
    """Question about the fewest among three rows or more, those above a limit in another column."""
    one, other = rng.permutation(len(table.columns))[:2].tolist()
    num_among = int(rng.integers(3, len(table.rows)))
    limit = sorted(table.column(one))[-num_among - 1]
    among = [row for row in range(len(table.rows)) if table.values[row][one] > limit]
    right = min(among, key=lambda row: table.values[row][other])
    text = (
        f"Of those with more than {limit} {table.columns[one]}, who has the fewest {table.columns[other]}? "
        f"Answer with one of: {', '.join(table.rows)}."
    )
    return text, Choice(table.rows[right], table.rows)


def _draw(image_size: int, table: Table, tint: Colour) -> ByteArray:
    image = Sketch(image_size, WHITE)
    margin = 10.0
    high = min((UNITS - 2 * margin) / (len(table.rows) + 1), 34)
    wide = (UNITS - 2 * margin) / (len(table.columns) + 1)
    top = (UNITS - high * (len(table.rows) + 1)) / 2
    lines = [("", *table.columns)]
    lines += [(name, *map(str, row)) for name, row in zip(table.rows, table.values, strict=True)]
    for index, line in enumerate(lines):
        y = top + index * high
        ground = shade(tint, 0.55) if index == 0 else shade(tint, 0.88) if index % 2 == 0 else WHITE
        image.rectangle((margin, y, UNITS - margin, y + high), ground)
        image.text((margin + 6, y + high / 2), line[0], 13, anchor="lm")
        for position, text in enumerate(line[1:], start=1):
            image.text((margin + (position + 0.5) * wide, y + high / 2), text, 13)
    bottom = top + high * len(lines)
    image.rectangle((margin, top, UNITS - margin, bottom), None, FAINT, 1.5)
    image.line([(margin + wide, top), (margin + wide, bottom)], FAINT, 1.5)
    return image.finish()


_SIZES: Mapping[int, tuple[int, int]] = {1: (3, 2), 2: (4, 3), 3: (5, 3), 4: (6, 4), 5: (8, 4)}
_ASKS: Mapping[int, Sequence[Callable[[np.random.Generator, Table], Asked]]] = {
    1: (_field,),
    2: (_field, _most),
    3: (_most, _difference, _total_of_three),
    4: (_difference, _how_many_above, _total_of_row),
    5: (_how_many_above, _total_of_row, _fewest_among),
}
