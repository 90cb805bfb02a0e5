"""How one step of a GUI agent agrees with the answer's: its type, its places, its arguments."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from vlrl.errors import ConfigError
from vlrl.processors.coordinates import Canvas, CoordinateFrame, Point
from vlrl.rewards import geometry
from vlrl.rewards.actions import PLACED, Action, Place, action_of, read_action
from vlrl.rewards.extract import Part, scored_text
from vlrl.rewards.frames import Frames, box_tuple, open_frames, point_tuple
from vlrl.rewards.overlap import edit_similarity
from vlrl.rewards.places import of_answer, try_read
from vlrl.types import Media

DIRECTIONS = ("up", "down", "left", "right")
NEEDED = {"type": "text", "select": "text", "open_app": "text", "key": "keys", "scroll": "direction"}
"""Actions that say nothing without an argument."""


def written_action(completion: str, part: Part) -> Action | None:
    """The one action of a completion; None for anything else."""
    action: Action | None = try_read(read_action, scored_text(completion, part))
    return action


def true_action(answer: Any) -> Action:
    """The action of a sample's answer; raises ValueError if it is none."""
    action: Action = of_answer(answer, read_action, action_of, "one action")
    return action


def frames_and_radius(
    canvases: Sequence[Canvas | Media],
    media_index: int,
    frame: CoordinateFrame | None,
    answer_frame: CoordinateFrame,
    radius: float,
) -> Frames:
    """The screenshot and its frames, for rewards that measure within a radius of it.

    Raises:
        ConfigError: for an unknown frame, or a radius that is not above 0.
        ValueError: if the sample has no such medium.
    """
    if not radius > 0:
        raise ConfigError(f"radius and sigma are shares of the diagonal above 0, not {radius}")
    return open_frames(canvases, media_index, frame, answer_frame)


def targets(true: Action, frames: Frames) -> Mapping[str, Place]:
    """The places that the answer's action must be at, in original pixels.

    Raises:
        ValueError: if the action needs one and the answer gives none.
    """
    if true.kind not in PLACED and "end" not in true.places:
        return {}
    if "point" not in true.places:
        raise ValueError(f"the sample's answer is a {true.kind} without a place")
    # mypy asks for the one or the other where either will do.
    return {name: frames.true(place) for name, place in true.places.items()}  # type: ignore[type-var]


def distance(said: Place | None, target: Place, frames: Frames) -> float:
    """How far the place written lies from the target, over the diagonal; a box is no place to click."""
    if not isinstance(said, Point):
        return math.inf
    point = point_tuple(frames.said(said))
    if isinstance(target, Point):
        return math.dist(point, point_tuple(target)) / frames.diagonal
    return geometry.distance_to_box(box_tuple(target), point) / frames.diagonal


def hits(said: Action, places: Mapping[str, Place], frames: Frames, radius: float) -> bool:
    """True if every place is hit: a box in it or on its edge, a point nearer than the radius."""
    for name, place in places.items():
        away = distance(said.places.get(name), place, frames)
        if away >= radius if isinstance(place, Point) else away > 0:
            return False
    return True


def nearness(
    said: Action | None, true: Action, places: Mapping[str, Place], frames: Frames, sigma: float
) -> float:
    """exp(−d / sigma) for an action of the true one's type, else 0; d is the mean distance of its places."""
    if said is None or said.kind != true.kind:
        return 0.0
    away = [distance(said.places.get(name), place, frames) for name, place in places.items()]
    return math.exp(-sum(away) / len(away) / sigma) if away else 1.0


def agreement(said: Action, name: str, value: str, measure: str) -> float:
    """How well one argument agrees, from 0 to 1; an argument that is not there does not."""
    written = said.arguments.get(name)
    if written is None or name != "text" or measure == "exact":
        return float(written == value)
    return edit_similarity(written, value, threshold=0.0, part="whole")


def says(said: Action, true: Action, same_text: Callable[[str, str], bool]) -> bool:
    """True if every argument of the answer is there and agrees."""
    for name, value in true.arguments.items():
        written = said.arguments.get(name)
        if written is None or not (same_text(written, value) if name == "text" else written == value):
            return False
    return True


def complete(said: Action) -> bool:
    """True if an action has what it needs."""
    if said.kind in PLACED:
        return isinstance(said.places.get("point"), Point)
    needed = NEEDED.get(said.kind)
    if needed == "direction":
        return said.arguments.get(needed) in DIRECTIONS
    return needed is None or needed in said.arguments
