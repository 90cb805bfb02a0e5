"""Official scorers of one step of a GUI agent: OSWorld-G, AndroidControl and Android in the Wild.

The options that all of them share are those of `vlrl.rewards.agents.steps`. A finger's swipe and a scroll are
the same thing said from two sides, and are compared as scrolls: a finger that goes up shows what is below.

    polygon   [x, y, x, y, …] in pixels of the image, from the row's metadata; None where the answer is a box
    near      share of the screen within which two taps are the same, x of its width and y of its height
    ui_boxes  (y, x, height, width) of each annotated box, as shares of the screen, from the row's metadata
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from vlrl.coordinates import Point
from vlrl.parsing.actions import Action
from vlrl.parsing.frames import AnswerFrames, box_tuple, point_tuple
from vlrl.rewards.agents.steps import Step, hits, targets
from vlrl.rewards.agents.steps import step as read_step
from vlrl.scoring.author import prepared_by, reward

NEAR = 0.14
"""Share of the screen within which two taps are the same, x as a share of its width and y of its height."""
GROWN = 1.4
"""By so much of its side an annotated box of Android in the Wild is enlarged."""
_OPPOSITE = {"up": "down", "down": "up", "left": "right", "right": "left"}
_TAPS = ("click", "long_press")


@reward(range=(0.0, 1.0))
@prepared_by(read_step)
def click_in_region(step: Step, *, polygon: Sequence[float] | None = None) -> float:
    """1 if the click lies in the box or in the polygon, or if nothing is meant and the model says so, else 0.

    Range {0, 1}. Source: OSWorld-G (Xie et al. 2025, arXiv 2505.13227). What lies in a polygon is decided by
    the even-odd rule. A refusal is the action that says that the task cannot be done.
    """
    frames, said, true = step.frames(NEAR), step.written, step.true
    places = targets(true, frames)
    if said is None or said.kind != true.kind or not hits(said, places, frames, NEAR):
        return 0.0
    if true.kind == "finish":
        return float(said.arguments.get("status") == true.arguments.get("status"))
    if polygon is None:
        return 1.0
    point = said.places.get("point")
    return float(isinstance(point, Point) and _is_inside(point_tuple(frames.said(point)), polygon))


def _is_inside(point: tuple[float, float], polygon: Sequence[float]) -> bool:
    x, y = point
    corners = list(zip(polygon[::2], polygon[1::2], strict=True))
    inside = False
    for (x0, y0), (x1, y1) in zip(corners, [corners[-1], *corners[:-1]], strict=True):
        if (y0 > y) != (y1 > y) and x < (x1 - x0) * (y - y0) / (y1 - y0) + x0:
            inside = not inside
    return inside


@reward(range=(0.0, 1.0))
@prepared_by(read_step)
def android_control(step: Step, *, near: float = NEAR) -> float:
    """1 if the step is right, else 0: its type, and what goes with the type.

    A tap is right in the box of what was tapped, or, where the answer is a point, near it; a scroll in its
    direction; a text and an app's name without regard to case; the other types alone. Range {0, 1}. Source:
    step accuracy of AndroidControl (Li et al. 2024, arXiv 2406.03679); the distance is that of Android in the
    Wild. The paper's two equivalences, opening an app by its icon and going back by an arrow on the screen,
    are not known from a row and count as wrong.
    """
    frames = step.frames(near)
    gesture = _common_gesture(step, frames)
    if step.written is None or gesture is None:
        return 0.0
    kind, said_way, way = gesture
    if kind == "scroll":
        return float(said_way == way)
    if kind in _TAPS:
        return float(_taps(step, frames, near))
    for name in ("text", "status", "keys"):
        if name in step.true.arguments:
            said = step.written.arguments.get(name, "")
            if said.strip().casefold() != step.true.arguments[name].strip().casefold():
                return 0.0
    return 1.0


@reward(range=(0.0, 1.0))
@prepared_by(read_step)
def aitw(step: Step, *, ui_boxes: Sequence[Sequence[float]] = (), near: float = NEAR) -> float:
    """1 if both actions would lead to the same screen, else 0: action matching.

    Two taps match within `near` of each other, or in the same annotated box, enlarged; two swipes if their
    main axis is the same; of other actions the type is compared alone. Range {0, 1}. Source: Android in the
    Wild (Rawles et al. 2023, arXiv 2307.10088; action_matching.py).
    """
    frames = step.frames(near)
    gesture = _common_gesture(step, frames)
    if step.written is None or gesture is None:
        return 0.0
    kind, said_way, way = gesture
    if kind == "scroll":
        return float(_axis(said_way) == _axis(way))
    if kind in _TAPS:
        return float(_taps(step, frames, near) or _same_box(step, frames, ui_boxes))
    return float(step.written.arguments.get("status") == step.true.arguments.get("status"))


def _common_gesture(step: Step, frames: AnswerFrames) -> tuple[str, str | None, str | None] | None:
    """(kind, direction of what was said, true direction); None if both are not of one kind."""
    if step.written is None:
        return None
    said_kind, said_way = _gesture(step.written, lambda point: _share(frames.said(point), frames))
    kind, way = _gesture(step.true, lambda point: _share(frames.true(point), frames))
    return (kind, said_way, way) if said_kind == kind else None


def _gesture(action: Action, share: Callable[[Point], tuple[float, float]]) -> tuple[str, str | None]:
    """(kind, direction in which the view goes) of an action; a swipe is a scroll."""
    if action.kind == "scroll":
        return "scroll", action.arguments.get("direction")
    if action.kind not in ("swipe", "drag"):
        return action.kind, None
    start, end = action.places.get("point"), action.places.get("end")
    if not (isinstance(start, Point) and isinstance(end, Point)):
        return "scroll", _OPPOSITE.get(action.arguments.get("direction", ""))
    (x0, y0), (x1, y1) = share(start), share(end)
    if abs(x1 - x0) > abs(y1 - y0):
        return "scroll", "left" if x1 > x0 else "right"
    return "scroll", "up" if y1 > y0 else "down"


def _axis(way: str | None) -> str | None:
    return None if way is None else "x" if way in ("left", "right") else "y"


def _taps(step: Step, frames: AnswerFrames, near: float) -> bool:
    """True if the tap is in the true box, or near the true point."""
    assert step.written is not None
    true, said = targets(step.true, frames)["point"], step.written.places.get("point")
    if not isinstance(said, Point):
        return False
    x, y = _share(frames.said(said), frames)
    if isinstance(true, Point):
        return math.dist((x, y), _share(true, frames)) <= near
    height, width = frames.canvas.original_size
    x0, y0, x1, y1 = box_tuple(true)
    return x0 / width <= x <= x1 / width and y0 / height <= y <= y1 / height


def _same_box(step: Step, frames: AnswerFrames, boxes: Sequence[Sequence[float]]) -> bool:
    """True if both taps are in one annotated box, enlarged."""
    assert step.written is not None
    said, true = step.written.places.get("point"), targets(step.true, frames)["point"]
    if not (isinstance(said, Point) and isinstance(true, Point)):
        return False
    shares = [_share(frames.said(said), frames), _share(true, frames)]
    for y, x, height, width in boxes:
        top, left = max(0.0, y - GROWN * height / 2), max(0.0, x - GROWN * width / 2)
        bottom, right = top + min(1.0, height + GROWN * height), left + min(1.0, width + GROWN * width)
        if all(left <= px <= right and top <= py <= bottom for px, py in shares):
            return True
    return False


def _share(point: Point, frames: AnswerFrames) -> tuple[float, float]:
    height, width = frames.canvas.original_size
    x, y = point_tuple(point)
    return x / width, y / height
