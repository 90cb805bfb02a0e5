"""visual/counting: counting and attributes of things on a table, after CLEVR."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

import numpy as np

from vlrl.envs.visual.answers import Choice, Number, TaskAnswer, yes_or_no
from vlrl.envs.visual.drawing.things import (
    VALUES,
    Filter,
    Thing,
    columns_for,
    draw_filter,
    draw_things,
    matching,
    not_matching,
    say,
    scatter,
)
from vlrl.envs.visual.question import Question, QuestionEnv

Asked = tuple[str, TaskAnswer, list[Thing]]
Kind = Callable[[np.random.Generator, int, int], Asked]


class Counting(QuestionEnv):
    """Shows things of four shapes, eight colours, two sizes and two materials; asks what there is.

    Levels, each of which asks as those before it too: 1, 3 to 5 things, how many have one attribute; 2, to
    7, two attributes, and whether there is such a thing; 3, to 9, and of which of two kinds there are more;
    4, to 12, and what colour (shape, size, material) the one such thing has; 5, to 16, three attributes, and
    how many others share one with it.

    Reward 1 for the right number or word, else 0. Numbers are drawn evenly from 0 to level + 2, words evenly.
    Chance, and the same guess always, score 0.25 at level 1, 0.35 to 0.4 at 2 and 3, where half of the
    answers and more are yes or no, and about 0.33 above.
    """

    name: ClassVar[str] = "visual/counting"

    def ask(self, rng: np.random.Generator, level: int) -> Question:
        """One of the level's kinds of question, and an image made for it."""
        kinds = _KINDS[:level]
        kind = kinds[int(rng.integers(len(kinds)))]
        num_things = int(rng.integers(*_NUM_THINGS[level], endpoint=True))
        text, answer, things = kind(rng, num_things, level)
        placed = scatter(rng, things, columns_for(num_things))
        return Question(text, answer, [draw_things(self.image_size, placed)], metadata={"things": placed})


_NUM_THINGS: Mapping[int, tuple[int, int]] = {1: (3, 5), 2: (4, 7), 3: (5, 9), 4: (6, 12), 5: (9, 16)}
_NUM_ATTRIBUTES: Mapping[int, int] = {1: 1, 2: 2, 3: 2, 4: 2, 5: 3}


def _fill(
    rng: np.random.Generator, things: list[Thing], num_things: int, unwanted: Sequence[Filter]
) -> list[Thing]:
    return things + [not_matching(rng, unwanted) for _ in range(num_things - len(things))]


def _how_many(rng: np.random.Generator, num_things: int, level: int) -> Asked:
    wanted = draw_filter(rng, _NUM_ATTRIBUTES[level])
    right = int(rng.integers(0, level + 3))
    things = _fill(rng, [matching(rng, wanted) for _ in range(right)], num_things, [wanted])
    text = f"How many {say(wanted, plural=True)} are there? Answer with a whole number."
    return text, Number(right, 0, level + 2), things


def _exists(rng: np.random.Generator, num_things: int, level: int) -> Asked:
    wanted = draw_filter(rng, _NUM_ATTRIBUTES[level])
    right = bool(rng.integers(2))
    things = _fill(rng, [matching(rng, wanted)] if right else [], num_things, [wanted])
    return f"Is there a {say(wanted)}? Answer yes or no.", yes_or_no(right), things


def _more(rng: np.random.Generator, num_things: int, level: int) -> Asked:
    """Two kinds that differ in one attribute, so that nothing is of both."""
    name = ("colour", "shape")[int(rng.integers(2))]
    first, second = ({name: value} for value in rng.permutation(list(VALUES[name]))[:2].tolist())
    fewer = int(rng.integers(1, max(2, num_things // 2)))
    more = min(fewer + int(rng.integers(1, 3)), num_things - fewer)
    right = bool(rng.integers(2))
    counts = (more, fewer) if right else (fewer, more)
    things = [
        matching(rng, kind) for kind, count in zip((first, second), counts, strict=True) for _ in range(count)
    ]
    text = f"Are there more {say(first, plural=True)} than {say(second, plural=True)}? Answer yes or no."
    return text, yes_or_no(right), _fill(rng, things, num_things, [first, second])


def _query(rng: np.random.Generator, num_things: int, level: int) -> Asked:
    """The one thing of its kind, named by all but the attribute that is asked for."""
    wanted = draw_filter(rng, _NUM_ATTRIBUTES[level])
    rest = [name for name in VALUES if name not in wanted]
    name = rest[int(rng.integers(len(rest)))]
    thing = matching(rng, wanted)
    choices = VALUES[name]
    text = f"What {name} is the {say(wanted)}? Answer with one of: {', '.join(choices)}."
    return text, Choice(getattr(thing, name), choices), _fill(rng, [thing], num_things, [wanted])


def _same(rng: np.random.Generator, num_things: int, level: int) -> Asked:
    """Others that share an attribute with the one thing of its kind."""
    wanted = draw_filter(rng, _NUM_ATTRIBUTES[level])
    rest = [name for name in VALUES if name not in wanted]
    name = rest[int(rng.integers(len(rest)))]
    thing = matching(rng, wanted)
    shared = thing.attributes([name])
    right = int(rng.integers(0, level + 3))
    others: list[Thing] = []
    while len(others) < right:
        other = matching(rng, shared)
        if not other.matches(wanted):
            others.append(other)
    text = f"How many other things have the same {name} as the {say(wanted)}? Answer with a whole number."
    return text, Number(right, 0, level + 2), _fill(rng, [thing, *others], num_things, [wanted, shared])


_KINDS: Sequence[Kind] = (_how_many, _exists, _more, _query, _same)
