"""How one step of a GUI agent agrees with the answer's: its type, its places, its arguments."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from vlrl.coordinates import Canvas, CoordinateFrame, Point
from vlrl.envs.gui.codecs.grammar.tolerance import Tolerance
from vlrl.errors import ConfigError
from vlrl.parsing import geometry
from vlrl.parsing.actions import PLACED, Action, Place, action_of, read_action
from vlrl.parsing.extract import Part, scored_text
from vlrl.parsing.frames import AnswerFrames, box_tuple, open_frames, point_tuple
from vlrl.parsing.places import of_answer, try_read
from vlrl.rewards.agents.typed import read_by
from vlrl.rewards.text.overlap import edit_similarity
from vlrl.types import Media

ANY = "any"
"""The codec that reads every form of `vlrl.parsing.actions`."""
DIRECTIONS = ("up", "down", "left", "right")
NEEDED = {"type": "text", "select": "text", "open_app": "text", "key": "keys", "scroll": "direction"}
"""Actions that say nothing without an argument."""


@dataclass(frozen=True, slots=True)
class Step:
    """One action written and the action of the sample's answer, in the same words.

    Attributes:
        written: None for a text that is not an action, or several.
        true: of the sample's answer.
        canvases: sizes of the sample's images and videos.
        frame: the frame of the places written; None is what the model's family was taught.
        answer_frame: the frame of the answer's places.
        media_index: the screenshot among the canvases.
    """

    written: Action | None
    true: Action
    canvases: Sequence[Canvas | Media]
    frame: CoordinateFrame | None
    answer_frame: CoordinateFrame
    media_index: int

    def frames(self, radius: float) -> AnswerFrames:
        """The screenshot and its frames, for rewards that measure within a radius of it.

        Raises:
            ConfigError: for an unknown frame, or a radius that is not above 0.
            ValueError: if the sample has no such medium.
        """
        if not radius > 0:
            raise ConfigError(f"radius and sigma are shares of the diagonal above 0, not {radius}")
        return open_frames(self.canvases, self.media_index, self.frame, self.answer_frame)


def step(
    completion: str,
    answer: Any,
    *,
    canvases: Sequence[Canvas | Media] = (),
    codec: str = ANY,
    tolerance: Tolerance = "published",
    frame: CoordinateFrame | None = None,
    answer_frame: CoordinateFrame = "original_pixels",
    media_index: int = -1,
    part: Part = "answer",
) -> Step:
    """Prepare a reward on one step of a GUI agent (`vlrl.scoring.author.prepared_by`).

    Args:
        completion: what the model wrote.
        answer: of the sample.
        canvases: sizes of the sample's images and videos.
        codec: "any" reads the forms of `vlrl.parsing.actions`, in `part` and `frame`. NAME or NAME@FRAME
            reads one grammar of docs/gui_actions.md, which has its own part and frame. A row's metadata
            key `codec` chooses it for that row, unless the config does.
        tolerance: how much of a codec's form is forgiven; see docs/gui_actions.md.
        frame: the frame the model writes in; None is what its family was taught (Media.coordinate_frame).
        answer_frame: the frame of the sample's answer.
        media_index: which of the sample's images it is about; −1 is the last screenshot.
        part: "answer" reads the strict think/answer form, "whole" all of the completion.

    Raises:
        ConfigError: for an unknown codec, or a part, frame or tolerance that the codec does not read.
        ValueError: if the sample's answer is not an action.
    """
    true: Action = of_answer(answer, read_action, action_of, "one action")
    if codec == ANY:
        if tolerance != "published":
            raise ConfigError(f"tolerance={tolerance!r} has no effect with codec 'any'; name a codec")
        written = try_read(read_action, scored_text(completion, part))
        return Step(written, true, canvases, frame, answer_frame, media_index)
    if frame is not None or part != "answer":
        raise ConfigError(f"codec {codec!r} has its own part and frame; for another frame give NAME@FRAME")
    seen = open_frames(canvases, media_index, "original_pixels", answer_frame).canvas
    written = read_by(codec, completion, seen, tolerance)
    return Step(written, true, canvases, "original_pixels", answer_frame, media_index)


def targets(true: Action, frames: AnswerFrames) -> Mapping[str, Place]:
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


def distance(said: Place | None, target: Place, frames: AnswerFrames) -> float:
    """How far the place written lies from the target, over the diagonal; a box is not a place to click."""
    if not isinstance(said, Point):
        return math.inf
    point = point_tuple(frames.said(said))
    if isinstance(target, Point):
        return math.dist(point, point_tuple(target)) / frames.diagonal
    return geometry.distance_to_box(box_tuple(target), point) / frames.diagonal


def hits(said: Action, places: Mapping[str, Place], frames: AnswerFrames, radius: float) -> bool:
    """True if every place is hit: a box in it or on its edge, a point nearer than the radius."""
    for name, place in places.items():
        away = distance(said.places.get(name), place, frames)
        if away >= radius if isinstance(place, Point) else away > 0:
            return False
    return True


def nearness(
    said: Action | None, true: Action, places: Mapping[str, Place], frames: AnswerFrames, sigma: float
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
