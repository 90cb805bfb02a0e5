"""Null policies on a data set: rewards of fixed answers and clicks that ignore the image, beside chance.

Every null policy is fitted on a random half of the rows and scored on the other, both ways, so that the best
of many fixed answers is not lucky. A score is the share of rows that it would get right:

    kind      right means                                  chance
    choice    the right one of the row's options           1 / options
    click     a click in the box (or within 5 % of the     the box's share of the image, or the circle's
              diagonal of the point)
    box       IoU with the one box of at least 0.5         0
    text      the same number or normalised text           1 / different answers to the same question in this
                                                           set; of a question asked fewer than 8 times, to
                                                           all whose answers have its form (yes/no, number,
                                                           text)

Answers are compared with answer and options, not by rewards: what a reward pays for half an answer is
ignored. A policy is marked if it is more than MARGIN and two standard errors above chance.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from vlrl.parsing import geometry

MARGIN = 0.05
LEAST_ROWS = 32
"""Fewest rows of a kind for which null policies are measured."""
ASKED_OFTEN = 8
GRID = 48
"""Columns and rows of places where a fixed click is tried."""
RADIUS = 0.05

Kind: TypeAlias = Literal["choice", "click", "box", "text"]
Place: TypeAlias = tuple[float, ...]
"""A point (x, y) or a box (x0, y0, x1, y1), as shares of the image's sides."""


@dataclass(frozen=True, slots=True)
class AskedRow:
    """What a row asks and what is right, as far as null policies need to know.

    Attributes:
        kind: of the answer.
        question: the prompt's words, case and white space evened out.
        answer: normalised; of a choice the number of the right option; "" for places.
        options: of a choice, in order.
        place: of a click or a box.
        aspect: width over height of the image.
    """

    kind: Kind
    question: str
    answer: str = ""
    options: tuple[str, ...] = ()
    place: Place = ()
    aspect: float = 1.0

    @property
    def form(self) -> str:
        """What the answer looks like, of a text."""
        if self.answer in ("yes", "no", "true", "false"):
            return "yes or no"
        return "number" if self.answer.lstrip("-").replace(".", "", 1).isdigit() else "text"


@dataclass(frozen=True, slots=True)
class Null:
    """What one null policy earns on the rows of one kind.

    Attributes:
        kind: of the answers.
        name: of the policy.
        num_rows: that it was scored on.
        score: share of them that it gets right.
        chance: what the kind's chance is on them.
        error: standard error of score − chance.
        example: the answer that it gives most.
    """

    kind: Kind
    name: str
    num_rows: int
    score: float
    chance: float
    error: float
    example: str

    @property
    def excess(self) -> float:
        """Score less chance."""
        return self.score - self.chance

    @property
    def is_marked(self) -> bool:
        """True if the rows can be won by it."""
        return self.excess > MARGIN and self.excess > 2 * self.error


Policy: TypeAlias = Callable[[Sequence[AskedRow]], Callable[[AskedRow], Any]]
"""rows to fit on → (row → its answer: a text, the number of an option, or a place)."""


def null_policies(rows: Sequence[AskedRow]) -> list[Null]:
    """Every null policy on every kind of row of which there are enough."""
    by_kind: dict[Kind, list[AskedRow]] = defaultdict(list)
    for row in rows:
        by_kind[row.kind].append(row)
    return [
        _scored(kind, name, policy, of_kind)
        for kind, of_kind in by_kind.items()
        if len(of_kind) >= LEAST_ROWS
        for name, policy in POLICIES[kind].items()
    ]


def _scored(kind: Kind, name: str, policy: Policy, rows: Sequence[AskedRow]) -> Null:
    chances = np.asarray(list(_chances(kind, rows)))
    scores, given = np.zeros(len(rows)), Counter[str]()
    order = np.random.default_rng(0).permutation(len(rows))  # rows may alternate
    for half in (0, 1):
        answer = policy([rows[index] for index in order[1 - half :: 2]])
        for index in order[half::2]:
            said = answer(rows[index])
            scores[index] = RIGHT[kind](rows[index], said)
            given[_shown(said)] += 1
    error = float((scores - chances).std() / math.sqrt(len(rows)))
    return Null(
        kind, name, len(rows), float(scores.mean()), float(chances.mean()), error, given.most_common(1)[0][0]
    )


def _chances(kind: Kind, rows: Sequence[AskedRow]) -> Iterator[float]:
    if kind in ("choice", "click", "box"):
        chance = {"choice": _one_of_options, "click": _share, "box": lambda row: 0.0}[kind]
        yield from map(chance, rows)
        return
    of_question, of_form = defaultdict(set), defaultdict(set)
    often = Counter(row.question for row in rows)
    for row in rows:
        of_question[row.question].add(row.answer)
        of_form[row.form].add(row.answer)
    for row in rows:
        among = of_question[row.question] if often[row.question] >= ASKED_OFTEN else of_form[row.form]
        yield 1 / len(among)


def _one_of_options(row: AskedRow) -> float:
    return 1 / len(row.options)


def _share(row: AskedRow) -> float:
    """How likely a click anywhere is right."""
    if len(row.place) == 2:
        diagonal = math.hypot(row.aspect, 1.0)
        return min(1.0, math.pi * (RADIUS * diagonal) ** 2 / row.aspect)
    x0, y0, x1, y1 = row.place
    return max(0.0, x1 - x0) * max(0.0, y1 - y0)


def _hit(row: AskedRow, said: Place) -> bool:
    if len(row.place) == 4:
        return geometry.contains((row.place[0], row.place[1], row.place[2], row.place[3]), (said[0], said[1]))
    away = math.hypot((row.place[0] - said[0]) * row.aspect, row.place[1] - said[1])
    return away <= RADIUS * math.hypot(row.aspect, 1.0)


def _same_box(row: AskedRow, said: Place) -> bool:
    found = geometry.iou_matrix([(row.place[0], row.place[1], row.place[2], row.place[3])], [said])  # type: ignore[list-item]
    return bool(found[0, 0] >= 0.5)


RIGHT: Mapping[Kind, Callable[[AskedRow, Any], bool]] = {
    "choice": lambda row, said: row.answer == said,
    "text": lambda row, said: row.answer == said,
    "click": _hit,
    "box": _same_box,
}


def _constant(rows: Sequence[AskedRow]) -> Callable[[AskedRow], str]:
    best = _most_common(row.answer for row in rows)
    return lambda row: best


def _by_question(rows: Sequence[AskedRow]) -> Callable[[AskedRow], str]:
    """Answer without the image: what the same words were most often answered with."""
    answers: dict[str, list[str]] = defaultdict(list)
    for row in rows:
        answers[row.question].append(row.answer)
    best = {question: _most_common(given) for question, given in answers.items()}
    overall = _most_common(row.answer for row in rows)
    return lambda row: best.get(row.question, overall)


def _by_option(rows: Sequence[AskedRow]) -> Callable[[AskedRow], str]:
    """The option whose words are most often right."""
    right = Counter(row.options[int(row.answer)] for row in rows)
    there = Counter(option for row in rows for option in row.options)

    def answer(row: AskedRow) -> str:
        shares = [(right[o] + 0.5) / (there[o] + 1 + len(row.options)) for o in row.options]
        return str(shares.index(max(shares)))

    return answer


def _longest(rows: Sequence[AskedRow]) -> Callable[[AskedRow], str]:
    return lambda row: str(max(range(len(row.options)), key=lambda number: len(row.options[number])))


def _first(rows: Sequence[AskedRow]) -> Callable[[AskedRow], str]:
    return lambda row: "0"


def _centre(rows: Sequence[AskedRow]) -> Callable[[AskedRow], Place]:
    return lambda row: (0.5, 0.5)


def _best_click(rows: Sequence[AskedRow]) -> Callable[[AskedRow], Place]:
    steps = (np.arange(GRID) + 0.5) / GRID
    hits = np.zeros((GRID, GRID))
    for row in rows:
        if len(row.place) == 4:
            x0, y0, x1, y1 = row.place
            hits += ((y0 <= steps) & (steps <= y1))[:, None] & ((x0 <= steps) & (steps <= x1))[None, :]
        else:
            x, y = row.place
            away = np.hypot((steps[None, :] - x) * row.aspect, steps[:, None] - y)
            hits += away <= RADIUS * math.hypot(row.aspect, 1.0)
    row_number, column = np.unravel_index(int(hits.argmax()), hits.shape)
    best = (float(steps[column]), float(steps[row_number]))
    return lambda row: best


def _click_by_question(rows: Sequence[AskedRow]) -> Callable[[AskedRow], Place]:
    """Where the same words were to be clicked on another image."""
    places: dict[str, list[AskedRow]] = defaultdict(list)
    for row in rows:
        places[row.question].append(row)
    best = {question: _best_click(given)(given[0]) for question, given in places.items()}
    overall = _best_click(rows)
    return lambda row: best.get(row.question) or overall(row)


def _whole_image(rows: Sequence[AskedRow]) -> Callable[[AskedRow], Place]:
    return lambda row: (0.0, 0.0, 1.0, 1.0)


def _median_box(rows: Sequence[AskedRow]) -> Callable[[AskedRow], Place]:
    median = np.median(np.asarray([row.place for row in rows]), axis=0)
    best = tuple(float(number) for number in median)
    return lambda row: best


POLICIES: Mapping[Kind, Mapping[str, Policy]] = {
    "choice": {
        "constant answer": _constant,
        "first option": _first,
        "longest option": _longest,
        "usual option": _by_option,
        "no image": _by_question,
    },
    "text": {"constant answer": _constant, "no image": _by_question},
    "click": {"centre click": _centre, "best fixed click": _best_click, "no image": _click_by_question},
    "box": {"whole image": _whole_image, "median box": _median_box},
}
"""kind → name → policy. "no image" answers by the question's words alone, as rows of the other half did."""


def _most_common(answers: Iterable[str]) -> str:
    """The most frequent; of equally frequent ones the first in the alphabet."""
    counts = Counter(answers)
    best: str = min(counts, key=lambda answer: (-counts[answer], answer))
    return best


def _shown(said: Any) -> str:
    return str(said)[:40] if isinstance(said, str) else ", ".join(f"{number:.2f}" for number in said)
