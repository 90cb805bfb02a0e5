"""Rewards on one step of a GUI agent, read by the codec it writes in: any grammar of docs/gui_actions.md.

Answers, and what of them is compared, are those of `vlrl.rewards.gui`. Which part of the text is the action,
and in which frame its numbers are, the codec says itself, so that there is neither `part` nor `frame`. What
the codec refuses scores 0. A row's metadata key `codec` chooses the codec for that row, unless the config
does; the datasets gui_grounding and screenspot give it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from vlrl.envs.gui.actions import (
    Action,
    Answer,
    Button,
    Click,
    Drag,
    Finish,
    Key,
    LongPress,
    Move,
    OpenApp,
    Pixel,
    Scroll,
    Swipe,
    SystemButton,
    TypeText,
    Wait,
)
from vlrl.envs.gui.codecs.codec import ActionError, View
from vlrl.envs.gui.codecs.open import open_codec
from vlrl.envs.gui.codecs.tolerance import Tolerance
from vlrl.processors.coordinates import Canvas, CoordinateFrame, Point
from vlrl.rewards.actions import Action as Said
from vlrl.rewards.scoring.author import reward
from vlrl.rewards.steps import frames_and_radius, hits, nearness, targets, true_action
from vlrl.types import Media

PIXELS: CoordinateFrame = "original_pixels"

_PARTS = 1024
"""Of a pixel's side; a power of two, so that whole pixels stay whole."""
_NOWHERE: Pixel = (-1, -1)
"""The pointer's place, which a dataset's picture does not tell; no text can name it."""

_CLICKS: Mapping[tuple[Button, int], str] = {
    ("left", 1): "click",
    ("left", 2): "double_click",
    ("left", 3): "triple_click",
    ("right", 1): "right_click",
    ("middle", 1): "middle_click",
}
_KINDS: Mapping[type, str] = {
    Move: "move",
    LongPress: "long_press",
    Scroll: "scroll",
    TypeText: "type",
    Key: "key",
    Wait: "wait",
    OpenApp: "open_app",
    Answer: "answer",
    Finish: "finish",
}
"""Action → what `vlrl.rewards.actions` calls it; what is neither here nor in `_kind` is nobody's answer."""


@reward(range=(0.0, 1.0))
def codec_click_in_box(
    completion: str,
    answer: Any,
    *,
    canvases: Sequence[Canvas | Media],
    codec: str = "plain",
    tolerance: Tolerance = "published",
    radius: float = 0.05,
    answer_frame: CoordinateFrame = PIXELS,
    media_index: int = -1,
    **context: Any,
) -> float:
    """1 if the action, read by `codec`, is of the answer's type and at its place (see `click_in_box`).

    Range {0, 1}. Source: ScreenSpot's click accuracy (arXiv 2401.10935) with the type. A click with modifiers
    held, or where the pointer is, is not the click of an answer.

    Raises:
        ConfigError: for an unknown codec.
    """
    frames = frames_and_radius(canvases, media_index, PIXELS, answer_frame, radius)
    said, true = read_by(codec, completion, frames.canvas, tolerance), true_action(answer)
    places = targets(true, frames)
    return float(said is not None and said.kind == true.kind and hits(said, places, frames, radius))


@reward(range=(0.0, 1.0))
def codec_click_distance(
    completion: str,
    answer: Any,
    *,
    canvases: Sequence[Canvas | Media],
    codec: str = "plain",
    tolerance: Tolerance = "published",
    sigma: float = 0.05,
    answer_frame: CoordinateFrame = PIXELS,
    media_index: int = -1,
    **context: Any,
) -> float:
    """exp(−d / sigma) for an action, read by `codec`, of the answer's type, as in `click_distance`; else 0.

    Range [0, 1].

    Raises:
        ConfigError: for an unknown codec, or unless sigma > 0.
    """
    frames = frames_and_radius(canvases, media_index, PIXELS, answer_frame, sigma)
    said, true = read_by(codec, completion, frames.canvas, tolerance), true_action(answer)
    return nearness(said, true, targets(true, frames), frames, sigma)


def read_by(codec: str, text: str, canvas: Canvas | Media, tolerance: Tolerance = "published") -> Said | None:
    """The action of a model's text in common words, without arguments; None if it is none or has none.

    Args:
        codec: its name.
        text: of the model, untrusted.
        canvas: the picture it speaks of.
        tolerance: how much of its form is forgiven; see docs/gui_actions.md.

    Returns:
        With places in the picture's original pixels, to a 1024th of one.

    Raises:
        ConfigError: for an unknown codec.
    """
    seen = Canvas.of(canvas) if isinstance(canvas, Media) else canvas
    reader = open_codec(codec, tolerance)
    try:
        action = reader.parse(text, _FineView(seen, _NOWHERE))
    except ActionError:  # what the model wrote is right or wrong
        return None
    kind = _kind(action)
    return None if kind is None else Said(kind, _places(action))


class _FineView(View):
    """What the model saw, its pixels cut into parts: a codec tells a place no closer than by its pixel."""

    __slots__ = ()

    @property
    def screen(self) -> tuple[int, int]:
        """(width, height) of the screen in parts of pixels."""
        height, width = self.canvas.original_size
        return width * _PARTS, height * _PARTS


def _kind(action: Action) -> str | None:
    match action:
        case Click(button=button, count=count, modifiers=()):
            return _CLICKS.get((button, count))
        case Drag(button="left", modifiers=()):
            return "drag"
        case Swipe():
            return "swipe"
        case SystemButton(name=name):
            return name
    return _KINDS.get(type(action))


def _places(action: Action) -> dict[str, Point]:
    match action:
        case Drag(path=path):
            ends = {"point": path[0], "end": path[-1]}
        case Swipe(start=start, end=end):
            ends = {"point": start, "end": end}
        case _:
            ends = {"point": getattr(action, "point", None) or _NOWHERE}
    return {name: Point(x / _PARTS, y / _PARTS) for name, (x, y) in ends.items() if (x, y) != _NOWHERE}
