"""visual/referring: the box of the one thing that a phrase means (referring expression comprehension)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

import numpy as np

from vlrl.envs.visual.boxes import BoxQuestionEnv, OneBox
from vlrl.envs.visual.drawing.things import (
    VALUES,
    Thing,
    columns_for,
    distance,
    draw_filter,
    draw_things,
    draw_value,
    matching,
    not_matching,
    say,
    scatter,
)
from vlrl.envs.visual.question import Question

MARGIN = 12.0
"""Units by which the thing meant is further left, nearer and so on than others that the phrase could mean."""

Meant = tuple[str, Thing, list[Thing]]


class Referring(BoxQuestionEnv):
    """Shows things on a table and asks for the box around one of them.

    Levels, each of which asks as the one before it too: 1, 3 or 4 things, named by colour and shape; 2, to 7,
    and by all four attributes, with others that differ in one; 3, to 9, and the leftmost (…) of a kind; 4, to
    12, and the one of a kind nearest to a certain thing; 5, to 16, and the second, third … from the left (…).

    The answer is [x0, y0, x1, y1] in `frame`: pixels of the image as it is given, or shares of its sides.
    Reward is the IoU with the true box, in [0, 1]; success is 0.5. A random box scores 0.03, the box around
    the whole image 0.02.
    """

    name: ClassVar[str] = "visual/referring"
    success_at: ClassVar[float] = 0.5

    def ask(self, rng: np.random.Generator, level: int) -> Question:
        """One of the level's kinds of phrase, and an image in which it means one thing."""
        kinds = _KINDS[max(0, level - 2) : level]
        kind = kinds[int(rng.integers(len(kinds)))]
        phrase, meant, things = kind(rng, int(rng.integers(*_NUM_THINGS[level], endpoint=True)))
        text = f"Where is {phrase}? Answer with its box [x0, y0, x1, y1] {self.grid.describe()}."
        image = draw_things(self.image_size, things)
        return Question(
            text,
            OneBox(self.box_of(meant), self.grid),
            [image],
            metadata={"things": things, "phrase": phrase},
        )


_NUM_THINGS: Mapping[int, tuple[int, int]] = {1: (3, 4), 2: (5, 7), 3: (6, 9), 4: (7, 12), 5: (9, 16)}
_SIDES: Sequence[tuple[str, str, int]] = (
    ("left", "x", 1),
    ("right", "x", -1),
    ("top", "y", 1),
    ("bottom", "y", -1),
)
_MOST = {"left": "leftmost", "right": "rightmost", "top": "topmost", "bottom": "bottommost"}
_ORDINALS = ("first", "second", "third", "fourth")


def _place(rng: np.random.Generator, things: Sequence[Thing]) -> list[Thing]:
    return scatter(rng, things, columns_for(len(things)))


def _by_colour_and_shape(rng: np.random.Generator, num_things: int) -> Meant:
    wanted = {"colour": draw_value(rng, "colour"), "shape": draw_value(rng, "shape")}
    things = [matching(rng, wanted), *(not_matching(rng, [wanted]) for _ in range(num_things - 1))]
    placed = _place(rng, things)
    return f"the {say(wanted)}", placed[0], placed


def _by_everything(rng: np.random.Generator, num_things: int) -> Meant:
    """Two or three others differ from it in one attribute only."""
    wanted = draw_filter(rng, len(VALUES))
    things = [matching(rng, wanted)]
    while len(things) < min(4, num_things):
        changed = list(VALUES)[int(rng.integers(len(VALUES)))]
        other = matching(rng, {**wanted, changed: draw_value(rng, changed)})
        if not other.matches(wanted):
            things.append(other)
    things += [not_matching(rng, [wanted]) for _ in range(num_things - len(things))]
    placed = _place(rng, things)
    return f"the {say(wanted)}", placed[0], placed


def _outermost(rng: np.random.Generator, num_things: int) -> Meant:
    return _in_order(rng, num_things, outermost=True)


def _ordinal(rng: np.random.Generator, num_things: int) -> Meant:
    return _in_order(rng, num_things, outermost=False)


def _in_order(rng: np.random.Generator, num_things: int, outermost: bool) -> Meant:
    """One of a kind, counted from a side; all of the kind are apart along that axis."""
    name = ("shape", "colour")[int(rng.integers(2))]
    wanted = {name: draw_value(rng, name)}
    group = int(rng.integers(3, 5))
    things = [matching(rng, wanted) for _ in range(group)]
    things += [not_matching(rng, [wanted]) for _ in range(num_things - group)]
    side, axis, sign = _SIDES[int(rng.integers(len(_SIDES)))]
    while True:
        placed = _place(rng, things)
        ordered = sorted(placed[:group], key=lambda thing: sign * getattr(thing, axis))
        values = [sign * getattr(thing, axis) for thing in ordered]
        if min(np.diff(values)) >= MARGIN:
            break
    if outermost:
        return f"the {_MOST[side]} {say(wanted)}", ordered[0], placed
    rank = int(rng.integers(1, group))
    return f"the {_ORDINALS[rank]} {say(wanted)} from the {side}", ordered[rank], placed


def _nearest(rng: np.random.Generator, num_things: int) -> Meant:
    """Thing of a kind that is nearest to the one thing of another kind, from middle to middle."""
    shape, other = rng.permutation(list(VALUES["shape"]))[:2].tolist()
    anchor = {"colour": draw_value(rng, "colour"), "shape": shape}
    wanted = {"shape": other}
    group = int(rng.integers(2, 5))
    things = [matching(rng, anchor), *(matching(rng, wanted) for _ in range(group))]
    things += [not_matching(rng, [anchor, wanted]) for _ in range(num_things - len(things))]
    while True:
        placed = _place(rng, things)
        ordered = sorted(placed[1 : group + 1], key=lambda thing: distance(thing, placed[0]))
        if distance(ordered[1], placed[0]) - distance(ordered[0], placed[0]) >= MARGIN:
            return f"the {say(wanted)} nearest to the {say(anchor)}", ordered[0], placed


_KINDS: Sequence[Callable[[np.random.Generator, int], Meant]] = (
    _by_colour_and_shape,
    _by_everything,
    _outermost,
    _nearest,
    _ordinal,
)
