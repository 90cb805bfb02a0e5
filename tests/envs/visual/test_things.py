"""Things on a table, and every question about them answered a second time from its words."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from vlrl.environment.open import open_env
from vlrl.envs.visual.drawing.things import (
    FLOOR,
    SHADOW,
    VALUES,
    Thing,
    columns_for,
    draw_things,
    matching,
    scatter,
)
from vlrl.envs.visual.question import Question

NUM_SEEDS = 100
CLEAR = 10.0
"""Units by which what is meant stands out: less, and people would disagree."""
WORD_OF = {value: name for name, values in VALUES.items() for value in values}
AXES = {
    "left": ("x", 1),
    "right": ("x", -1),
    "top": ("y", 1),
    "bottom": ("y", -1),
    "above": ("y", 1),
    "below": ("y", -1),
}


def asked(name: str, **options: Any) -> list[tuple[Question, list[Thing]]]:
    env: Any = open_env(name, {"image_size": 96, **options})
    found = []
    for level in range(1, env.num_levels + 1):
        for seed in range(NUM_SEEDS):
            env.reset({"level": level}, seed)
            found.append((env.question, list(env.question.metadata["things"])))
    return found


def chosen(things: list[Thing], phrase: str) -> list[Thing]:
    """Those that words such as "small red cubes" mean."""
    wanted = {}
    for word in phrase.split():
        single = word if word in WORD_OF else word.removesuffix("s")
        assert single in WORD_OF or single == "thing", phrase
        if single in WORD_OF:
            wanted[WORD_OF[single]] = single
    return [thing for thing in things if thing.matches(wanted)]


def the(things: list[Thing], phrase: str) -> Thing:
    (only,) = chosen(things, phrase)
    return only


def apart(one: Thing, other: Thing) -> float:
    return math.dist((one.x, one.y), (other.x, other.y))


def first_clearly(things: list[Thing], key: Callable[[Thing], float], rank: int = 0) -> Thing:
    ordered = sorted(things, key=key)
    for other in ordered:
        assert other is ordered[rank] or abs(key(other) - key(ordered[rank])) >= CLEAR
    return ordered[rank]


@pytest.mark.parametrize("num_things", [1, 5, 9, 16])
def test_things_lie_apart_and_within_the_image(num_things: int) -> None:
    rng = np.random.default_rng(num_things)
    for _ in range(100):
        things = scatter(rng, [matching(rng, {}) for _ in range(num_things)], columns_for(num_things))
        for index, thing in enumerate(things):
            x0, y0, x1, y1 = thing.box
            assert min(x0, y0) >= 0
            assert max(x1, y1) <= 224
            for other in things[:index]:
                assert x1 < other.box[0] or other.box[2] < x0 or y1 < other.box[1] or other.box[3] < y0


@pytest.mark.parametrize("shape", VALUES["shape"])
@pytest.mark.parametrize("size", VALUES["size"])
@pytest.mark.parametrize("material", VALUES["material"])
@pytest.mark.parametrize("image_size", [224, 448])
def test_boxes_fit_what_is_painted(shape: str, size: str, material: str, image_size: int) -> None:
    thing = Thing(size, "blue", material, shape, 100, 120)
    pixels = draw_things(image_size, [thing]).astype(int)
    ground = np.array([FLOOR, SHADOW])
    # anything between floor and shadow is a soft edge of the shadow; what is painted is far from that
    painted = np.abs(pixels[:, :, None] - ground).sum(-1).min(-1) > 60
    rows, columns = np.flatnonzero(painted.any(1)), np.flatnonzero(painted.any(0))
    found = np.array([columns[0], rows[0], columns[-1] + 1, rows[-1] + 1])
    assert np.abs(found - np.array(thing.box) * image_size / 224).max() <= 1.5


def test_counting_is_right() -> None:
    for question, things in asked("visual/counting"):
        text = question.text
        if match := re.match(r"How many (.+) are there\?", text):
            right = str(len(chosen(things, match[1])))
        elif match := re.match(r"Is there a (.+)\?", text):
            right = "yes" if chosen(things, match[1]) else "no"
        elif match := re.match(r"Are there more (.+) than (.+)\?", text):
            one, other = len(chosen(things, match[1])), len(chosen(things, match[2]))
            assert one != other
            right = "yes" if one > other else "no"
        elif match := re.match(r"What (\w+) is the (.+)\?", text):
            right = getattr(the(things, match[2]), match[1])
        else:
            match = re.match(r"How many other things have the same (\w+) as the (.+)\?", text)
            assert match, text
            thing = the(things, match[2])
            right = str(sum(getattr(other, match[1]) == getattr(thing, match[1]) for other in things) - 1)
        assert question.answer.text == right, text


def meant(things: list[Thing], phrase: str) -> Thing:
    """The one thing that a referring expression means."""
    if match := re.fullmatch(r"the (.+) nearest to the (.+)", phrase):
        anchor = the(things, match[2])
        return first_clearly(chosen(things, match[1]), lambda thing: apart(thing, anchor))
    if match := re.fullmatch(r"the (left|right|top|bottom)most (.+)", phrase):
        axis, sign = AXES[match[1]]
        return first_clearly(chosen(things, match[2]), lambda thing: sign * float(getattr(thing, axis)))
    if match := re.fullmatch(r"the (second|third|fourth) (.+) from the (\w+)", phrase):
        axis, sign = AXES[match[3]]
        rank = ("first", "second", "third", "fourth").index(match[1])
        return first_clearly(chosen(things, match[2]), lambda thing: sign * float(getattr(thing, axis)), rank)
    return the(things, phrase.removeprefix("the "))


def test_referring_expressions_mean_one_thing() -> None:
    for question, things in asked("visual/referring", image_size=224):
        match = re.match(r"Where is (.+?)\? ", question.text)
        assert match
        thing = meant(things, match[1])
        assert question.answer.text == str([round(side) for side in thing.box])


def test_detection_names_every_thing_of_the_kinds_and_no_other() -> None:
    for question, things in asked("visual/detection", image_size=224):
        kinds = re.match(r"Find every (.+?)\. ", question.text)
        assert kinds
        labels = kinds[1].split(" and every ")
        expected = [
            (label, [round(side) for side in thing.box])
            for label in labels
            for thing in chosen(things, label)
        ]
        assert sorted(question.answer.boxes) == sorted(expected)  # type: ignore[attr-defined]


def test_spatial_answers_are_right() -> None:
    for question, things in asked("visual/spatial"):
        text, heading = question.text, question.metadata["heading"]
        if heading is not None:
            right = seen_from(things[0], heading, text, things[1:])
        elif match := re.match(r"Is the (.+?) (?:to the )?(left|right|above|below)(?: of)? the (.+)\?", text):
            right = "yes" if beyond(the(things, match[1]), the(things, match[3]), match[2]) else "no"
        elif match := re.match(r"On which side of the (.+) is the (.+)\?", text):
            anchor, thing = the(things, match[1]), the(things, match[2])
            (right,) = (
                side
                for side in ("left", "right", "above", "below")
                if beyond(thing, anchor, side, quiet=True) > 1.9 * across(thing, anchor, side)
            )
        elif match := re.match(r"Which is (nearest to|farthest from) the (.+)\?", text):
            anchor, sign = the(things, match[2]), 1 if match[1] == "nearest to" else -1
            others = [thing for thing in things if thing is not anchor]
            ordered = sorted(others, key=lambda thing: sign * apart(thing, anchor))
            assert abs(apart(ordered[0], anchor) - apart(ordered[1], anchor)) >= CLEAR
            right = f"{ordered[0].colour} {ordered[0].shape}"
        elif match := re.match(r"Which thing lies between the (.+) and the (.+)\?", text):
            ends = the(things, match[1]), the(things, match[2])
            others = [thing for thing in things if thing not in ends]
            detours = [apart(thing, ends[0]) + apart(thing, ends[1]) - apart(*ends) for thing in others]
            order = np.argsort(detours)
            assert detours[order[0]] + 3 < detours[order[1]]
            right = f"{others[order[0]].colour} {others[order[0]].shape}"
        else:
            match = re.match(
                r"How many things are (?:to the )?(left|right|above|below)(?: of)? the (.+)\?", text
            )
            assert match, text
            anchor = the(things, match[2])
            right = str(sum(beyond(thing, anchor, match[1]) > 0 for thing in things if thing is not anchor))
        assert question.answer.text == right, text


def beyond(thing: Thing, anchor: Thing, side: str, quiet: bool = False) -> float:
    """Units by which a thing lies further to a side; 0 if it does not."""
    axis, sign = AXES[side]
    ahead = sign * (getattr(anchor, axis) - getattr(thing, axis))
    assert quiet or abs(ahead) >= CLEAR
    return max(0.0, float(ahead))


def across(thing: Thing, anchor: Thing, side: str) -> float:
    return float(abs(thing.y - anchor.y) if side in ("left", "right") else abs(thing.x - anchor.x))


def seen_from(viewer: Thing, heading: float, text: str, things: list[Thing]) -> str:
    """Where a thing is for someone who looks along `heading`, by products of vectors."""
    match = re.search(r"Where is the (.+) for you\?", text)
    assert match
    thing = the(things, match[1])
    look = math.cos(math.radians(heading)), math.sin(math.radians(heading))
    to = thing.x - viewer.x, thing.y - viewer.y
    ahead, to_right = look[0] * to[0] + look[1] * to[1], look[0] * to[1] - look[1] * to[0]
    assert max(abs(ahead), abs(to_right)) > 2 * min(abs(ahead), abs(to_right))
    if abs(ahead) > abs(to_right):
        return "in front" if ahead > 0 else "behind"
    return "right" if to_right > 0 else "left"
