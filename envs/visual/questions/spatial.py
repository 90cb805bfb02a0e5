"""visual/spatial: where things lie from one another, and from the side of someone in the image."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

import numpy as np

from vlrl.envs.visual.answers import Choice, Number, TaskAnswer, yes_or_no
from vlrl.envs.visual.drawing.draw import INK, WHITE, Sketch, around
from vlrl.envs.visual.drawing.things import (
    FLOOR,
    VALUES,
    Thing,
    columns_for,
    distance,
    draw_value,
    matching,
    paint_things,
    say,
    scatter,
)
from vlrl.envs.visual.question import Question, QuestionEnv

MARGIN = 14.0
"""Units by which one thing is further left, nearer and so on than another that is compared with it."""
OFF_LINE = 26.0
"""Units that all others keep from the line on which a thing lies between two."""
CLEARLY = 25.0
"""Degrees by which a direction may miss left, right, front or back."""

Asked = tuple[str, TaskAnswer, list[Thing], float | None]


class Spatial(QuestionEnv):
    """Shows things of different colours; asks about left and right, near and far, between and behind.

    Levels, each of which asks as the one before it too: 1, 2 or 3 things, is one left of (right of, above,
    below) another; 2, 4 or 5, on which of the four sides it is; 3, to 7, which is nearest or farthest; 4, to
    8, which lies between two, and how many lie further left; 5, to 8, on which side something is for someone
    who stands in the image and looks along an arrow.

    Places are middles, and all that is compared differs clearly. Reward 1 for the right word or number, else
    0. Chance scores 0.5 at level 1, 0.38 at 2, about 0.25 above.
    """

    name: ClassVar[str] = "visual/spatial"

    def ask(self, rng: np.random.Generator, level: int) -> Question:
        """One of the level's kinds of question, and an image that leaves no doubt."""
        kinds = _KINDS[max(0, level - 2) : level]
        kind = kinds[int(rng.integers(len(kinds)))]
        num_things = int(rng.integers(*_NUM_THINGS[level], endpoint=True))
        colours = rng.permutation(list(VALUES["colour"])).tolist()
        shapes = [draw_value(rng, "shape") for _ in range(num_things)]
        things = [matching(rng, {"colour": c, "shape": s}) for c, s in zip(colours, shapes, strict=False)]
        text, answer, placed, heading = kind(rng, things)
        image = Sketch(self.image_size, FLOOR)
        if heading is None:
            paint_things(image, placed)
        else:
            paint_things(image, placed[1:])
            _arrow(image, placed[0], heading)
        return Question(text, answer, [image.finish()], metadata={"things": placed, "heading": heading})


_NUM_THINGS: Mapping[int, tuple[int, int]] = {1: (2, 3), 2: (4, 5), 3: (4, 7), 4: (5, 8), 5: (5, 8)}
_SIDES: Sequence[tuple[str, str, str, int]] = (
    ("left", "to the left of", "x", -1),
    ("right", "to the right of", "x", 1),
    ("above", "above", "y", -1),
    ("below", "below", "y", 1),
)
_AROUND = ("in front", "right", "behind", "left")


def _name(thing: Thing) -> str:
    return say(thing.attributes(["colour", "shape"]))


def _place(rng: np.random.Generator, things: Sequence[Thing]) -> list[Thing]:
    return scatter(rng, things, columns_for(len(things)))


def _is_on_side(rng: np.random.Generator, things: Sequence[Thing]) -> Asked:
    _, words, axis, sign = _SIDES[int(rng.integers(len(_SIDES)))]
    while True:
        placed = _place(rng, things)
        ahead = sign * (getattr(placed[0], axis) - getattr(placed[1], axis))
        if abs(ahead) >= MARGIN:
            break
    text = f"Is the {_name(placed[0])} {words} the {_name(placed[1])}? Answer yes or no."
    return text, yes_or_no(ahead > 0), placed, None


def _which_side(rng: np.random.Generator, things: Sequence[Thing]) -> Asked:
    """More than twice as far along one axis as along the other."""
    words = [side for side, *_ in _SIDES]
    while True:
        placed = _place(rng, things)
        right, down = placed[0].x - placed[1].x, placed[0].y - placed[1].y
        if max(abs(right), abs(down)) >= max(MARGIN, 2 * min(abs(right), abs(down))):
            break
    side = words[int(right > 0)] if abs(right) > abs(down) else words[2 + int(down > 0)]
    text = (
        f"On which side of the {_name(placed[1])} is the {_name(placed[0])}? "
        f"Answer with one of: {', '.join(words)}."
    )
    return text, Choice(side, words), placed, None


def _nearest(rng: np.random.Generator, things: Sequence[Thing]) -> Asked:
    word, sign = (("nearest to", 1), ("farthest from", -1))[int(rng.integers(2))]
    while True:
        placed = _place(rng, things)
        ordered = sorted(placed[1:], key=lambda thing: sign * distance(thing, placed[0]))
        if abs(distance(ordered[1], placed[0]) - distance(ordered[0], placed[0])) >= MARGIN:
            break
    names = sorted(_name(thing) for thing in placed[1:])
    text = f"Which is {word} the {_name(placed[0])}? Answer with one of: {', '.join(names)}."
    return text, Choice(_name(ordered[0]), names), placed, None


def _between(rng: np.random.Generator, things: Sequence[Thing]) -> Asked:
    """The third thing near the middle of the line from the first to the second; or a count along an axis."""
    if rng.integers(2):
        return _how_many_beyond(rng, things)
    while True:
        placed = _place(rng, things)
        off = [_from_line(thing, placed[0], placed[1]) for thing in placed[2:]]
        if off[0] <= 8 and min(off[1:]) >= OFF_LINE and _is_midway(placed[2], placed[0], placed[1]):
            break
    names = sorted(_name(thing) for thing in placed[2:])
    text = (
        f"Which thing lies between the {_name(placed[0])} and the {_name(placed[1])}? "
        f"Answer with one of: {', '.join(names)}."
    )
    return text, Choice(_name(placed[2]), names), placed, None


def _from_line(thing: Thing, start: Thing, end: Thing) -> float:
    """Units from a thing's middle to the line from start to end, ends included."""
    along_x, along_y = end.x - start.x, end.y - start.y
    share = ((thing.x - start.x) * along_x + (thing.y - start.y) * along_y) / (along_x**2 + along_y**2)
    share = min(max(share, 0.0), 1.0)
    return math.dist((thing.x, thing.y), (start.x + share * along_x, start.y + share * along_y))


def _is_midway(thing: Thing, start: Thing, end: Thing) -> bool:
    whole = distance(start, end)
    return max(distance(thing, start), distance(thing, end)) <= 0.7 * whole


def _how_many_beyond(rng: np.random.Generator, things: Sequence[Thing]) -> Asked:
    _, words, axis, sign = _SIDES[int(rng.integers(len(_SIDES)))]
    while True:
        placed = _place(rng, things)
        ahead = [sign * (getattr(thing, axis) - getattr(placed[0], axis)) for thing in placed[1:]]
        if min(map(abs, ahead)) >= MARGIN:
            break
    right = sum(value > 0 for value in ahead)
    text = f"How many things are {words} the {_name(placed[0])}? Answer with a whole number."
    return text, Number(right, 0, 6), placed, None


def _for_someone(rng: np.random.Generator, things: Sequence[Thing]) -> Asked:
    """The first thing gives its place to someone, who looks in one of eight directions."""
    heading = 45.0 * int(rng.integers(8))
    while True:
        placed = _place(rng, things)
        bearing = math.degrees(math.atan2(placed[1].y - placed[0].y, placed[1].x - placed[0].x)) - heading
        quarter = math.floor(bearing / 90 + 0.5)
        if abs(bearing - 90 * quarter) <= CLEARLY:
            break
    text = (
        f"You stand at the white disc and look along its arrow. Where is the {_name(placed[1])} for you? "
        f"Answer with one of: {', '.join(_AROUND)}."
    )
    return text, Choice(_AROUND[quarter % 4], _AROUND), placed, heading


def _arrow(image: Sketch, thing: Thing, heading: float) -> None:
    """Someone seen from above: a disc with an arrow to where they look."""
    middle = (thing.x, thing.y)
    image.circle(middle, 15, WHITE, INK, 1.5)
    image.line([around(middle, 9, heading + 180), around(middle, 5, heading)], INK, 3)
    tip = [around(middle, 12, heading), around(middle, 7, heading + 100), around(middle, 7, heading - 100)]
    image.polygon(tip, INK)


_KINDS: Sequence[Callable[[np.random.Generator, Sequence[Thing]], Asked]] = (
    _is_on_side,
    _which_side,
    _nearest,
    _between,
    _for_someone,
)
