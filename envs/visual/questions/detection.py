"""visual/detection: the boxes of all things of some kinds, as VLM-R1 has a model write them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from vlrl.envs.visual.boxes import BoxQuestionEnv, LabelledBoxes
from vlrl.envs.visual.drawing.things import (
    VALUES,
    Thing,
    columns_for,
    draw_things,
    draw_value,
    matching,
    not_matching,
    say,
    scatter,
)
from vlrl.envs.visual.question import Question


class Detection(BoxQuestionEnv):
    """Shows things on a table and asks for the boxes of all that are of the named kinds.

    Levels: 1, 1 to 3 things, all of one shape; 2, to 5, two shapes and others; 3, to 8, all four shapes; 4,
    to 12, two kinds of colour and shape among others; 5, to 16, three such kinds, some of them not there.

    The answer is a JSON list of {"bbox_2d": [x0, y0, x1, y1], "label": "cube"} in `frame`, as in
    visual/referring. Reward is F1 at IoU 0.5 and equal labels, in [0, 1]; success is 1. Random boxes score
    less than 0.01.
    """

    name: ClassVar[str] = "visual/detection"

    def ask(self, rng: np.random.Generator, level: int) -> Question:
        """Some kinds, things of these kinds and others."""
        num_things = int(rng.integers(*_NUM_THINGS[level], endpoint=True))
        kinds = _draw_kinds(rng, level)
        things = _draw_things(rng, level, num_things, kinds)
        placed = scatter(rng, things, columns_for(num_things))
        labels = [say(kind) for kind in kinds]
        boxes = [
            (label, self.box_of(thing))
            for thing in sorted(placed, key=lambda thing: (thing.y, thing.x))
            for kind, label in zip(kinds, labels, strict=True)
            if thing.matches(kind)
        ]
        text = (
            f"Find every {' and every '.join(labels)}. Answer with a JSON list of "
            f'{{"bbox_2d": [x0, y0, x1, y1], "label": "{labels[0]}"}}, the boxes {self.grid.describe()}.'
        )
        answer = LabelledBoxes(boxes, labels, _NUM_THINGS[level][1], self.grid)
        return Question(text, answer, [draw_things(self.image_size, placed)], metadata={"things": placed})


_NUM_THINGS: Mapping[int, tuple[int, int]] = {1: (1, 3), 2: (3, 5), 3: (5, 8), 4: (8, 12), 5: (10, 16)}
_NUM_KINDS: Mapping[int, int] = {1: 1, 2: 2, 3: 4, 4: 2, 5: 3}


def _draw_kinds(rng: np.random.Generator, level: int) -> list[dict[str, str]]:
    shapes = rng.permutation(list(VALUES["shape"]))[: _NUM_KINDS[level]].tolist()
    colours = rng.permutation(list(VALUES["colour"]))[: len(shapes)].tolist()
    if level < 4:
        return [{"shape": shape} for shape in shapes]
    return [{"colour": colour, "shape": shape} for colour, shape in zip(colours, shapes, strict=True)]


def _draw_things(
    rng: np.random.Generator, level: int, num_things: int, kinds: Sequence[Mapping[str, str]]
) -> list[Thing]:
    """All of them of the kinds at levels 1 and 3, else half; at level 5 at least one kind is missing."""
    present = kinds[: int(rng.integers(1, len(kinds)))] if level == 5 else kinds
    num_wanted = num_things if level in (1, 3) else (num_things + 1) // 2
    things = [matching(rng, present[int(rng.integers(len(present)))]) for _ in range(num_wanted)]
    while len(things) < num_things:
        if level < 4:
            things.append(not_matching(rng, kinds))
            continue
        # one that has the colour or the shape, but not both
        kind = kinds[int(rng.integers(len(kinds)))]
        changed = ("colour", "shape")[int(rng.integers(2))]
        other = matching(rng, {**kind, changed: draw_value(rng, changed)})
        if not any(other.matches(kind) for kind in kinds):
            things.append(other)
    return things
