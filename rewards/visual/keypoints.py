"""Object keypoint similarity: how near the joints written lie to the true ones, by the object's size."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from vlrl.coordinates import Canvas, CoordinateFrame, Point, frame_extent
from vlrl.errors import ConfigError
from vlrl.parsing.frames import point_tuple
from vlrl.parsing.places import MAX_COORDINATE
from vlrl.parsing.strict_json import Unreadable, strict_json, unfenced
from vlrl.rewards.visual.placed import Placed, placed
from vlrl.scoring.author import prepared_by, reward
from vlrl.types import Media

COCO_SIGMAS = (
    *(0.026, 0.025, 0.025, 0.035, 0.035, 0.079, 0.079, 0.072, 0.072),
    *(0.062, 0.062, 0.107, 0.107, 0.087, 0.087, 0.089, 0.089),
)
"""Spread of COCO's 17 joints over annotators, nose to right ankle (cocodataset.org/#keypoints-eval)."""

MAX_KEYPOINTS = 200


@dataclass(frozen=True, slots=True)
class Keypoints:
    """Places by number or by name; None is a joint that is not there.

    Attributes:
        places: in order.
        names: of each, if it was given as a mapping.
        area: of the object, in square units of the answer's frame; only an answer has one.
    """

    places: tuple[Point | None, ...]
    names: tuple[str, ...] = ()
    area: float | None = None


@reward(range=(0.0, 1.0))
@prepared_by(placed)
def keypoint_oks(
    pair: Placed,
    *,
    area: float | None = None,
    sigmas: Sequence[float] | float | None = None,
    threshold: float = 0.0,
) -> float:
    """OKS = Σ_i exp(−d_i² / (2·s²·k_i²))·[v_i > 0] / Σ_i [v_i > 0], k_i = 2·σ_i; 0 below a threshold.

    d_i is the distance of joint i written from the true one in original pixels, s² the object's area, v_i the
    true visibility. Range [0, 1]. Source: COCO's keypoint evaluation (cocodataset.org/#keypoints-eval;
    Ronchi and Perona 2017, arXiv 1707.05388, equation 1), without its 1e-16 beside the area.

    Keypoints are a flat list x, y, v, x, y, v, … as COCO has it; a list of [x, y], [x, y, v] or null; a
    mapping of names to the same; each also under the key "keypoints". v 0 means that the
    joint is not there; what the model writes as v or null besides is not scored. Written and true ones have
    the same number, or the same names. Missing joints count 0. An answer that is a mapping may also hold
    "area", in square units of `answer_frame`, or "bbox" (x0, y0, x1, y1).

    Args:
        pair: the keypoints written and the true ones.
        area: of the object, where the answer does not hold it; else that of its bbox times 0.53, as is usual
            for boxes without a segmentation (MMPose), else of the joints' own hull.
        sigmas: σ of every joint, or one for all; None is COCO's 17.
        threshold: values below it score 0.

    Raises:
        ValueError: for a sample whose answer is missing, unreadable, off the image, or without
            a joint or an area.
        ConfigError: for sigmas that are not above 0 or as many as joints; an unknown frame.
    """
    frames, true = pair.frames, pair.true(read_keypoints, keypoints_of, "keypoints")
    size = _area(true, area) * _scale(frames.canvas, frames.answered)
    spreads = _sigmas(sigmas, len(true.places))
    targets = [None if place is None else point_tuple(frames.true(place)) for place in true.places]
    said = pair.written(read_keypoints)
    if said is None or len(said.places) != len(targets) or sorted(said.names) != sorted(true.names):
        return 0.0
    by_name = dict(zip(said.names, said.places, strict=True)) if said.names else {}
    ordered = [by_name[name] for name in true.names] if by_name else said.places
    total = 0.0
    for target, place, sigma in zip(targets, ordered, spreads, strict=True):
        if target is not None and place is not None:
            away = math.dist(point_tuple(frames.said(place)), target)
            total += math.exp(-(away**2) / (2 * size * (2 * sigma) ** 2))
    value = total / sum(target is not None for target in targets)
    return value if value >= threshold else 0.0


def read_keypoints(text: str) -> Keypoints:
    """The keypoints of a text that is nothing but them.

    Raises:
        Unreadable: if the text is anything else.
    """
    return keypoints_of(strict_json(unfenced(text)))


def keypoints_of(value: Any) -> Keypoints:
    """The keypoints of a value; see `keypoint_oks`.

    Raises:
        Unreadable: if it is anything else.
    """
    if isinstance(value, Mapping) and "keypoints" in value:
        inner = _places(value["keypoints"])
        return Keypoints(inner.places, inner.names, _stated_area(value))
    return _places(value)


def _places(value: Any) -> Keypoints:
    if isinstance(value, Mapping):
        _require_number_of(len(value))
        return Keypoints(tuple(map(_place, value.values())), tuple(map(str, value)))
    if not _is_list(value):
        raise Unreadable("keypoints are a list of places, or a mapping of names to places")
    if value and _is_number(value[0]):
        if len(value) % 3:
            raise Unreadable(f"{len(value)} numbers are not x, y, visibility of every joint")
        value = [value[i : i + 3] for i in range(0, len(value), 3)]
    _require_number_of(len(value))
    return Keypoints(tuple(map(_place, value)))


def _place(value: Any) -> Point | None:
    if value is None:
        return None
    if not _is_list(value) or len(value) not in (2, 3) or not all(map(_is_number, value)):
        raise Unreadable("a keypoint is [x, y], [x, y, visibility] or null")
    if not all(abs(number) <= MAX_COORDINATE for number in value):  # NaN is not below anything
        raise Unreadable(f"a coordinate is a number of at most {MAX_COORDINATE:g}")
    return Point(float(value[0]), float(value[1])) if len(value) == 2 or value[2] > 0 else None


def _stated_area(value: Mapping[str, Any]) -> float | None:
    if "area" in value:
        return _area_number(value["area"])
    box = value.get("bbox")
    if box is None:
        return None
    if not _is_list(box) or len(box) != 4 or not all(map(_is_number, box)):
        raise Unreadable("bbox is [x0, y0, x1, y1]")
    return _area_number(0.53 * (box[2] - box[0]) * (box[3] - box[1]))


def _area_number(value: Any) -> float:
    if not _is_number(value) or not 0 < value <= MAX_COORDINATE**2:
        raise Unreadable("an object's area is a number above 0")
    return float(value)


def _area(true: Keypoints, given: float | None) -> float:
    """The object's area in its answer's frame.

    Raises:
        ValueError: if there is no joint, or nothing that gives a size.
    """
    there = [place for place in true.places if place is not None]
    if not there:
        raise ValueError("the sample's answer has no keypoint that is there")
    area = given if given is not None else true.area
    if area is None:
        xs, ys = [place.x for place in there], [place.y for place in there]
        area = (max(xs) - min(xs)) * (max(ys) - min(ys))
    if not (math.isfinite(area) and area > 0):
        raise ValueError("the sample's keypoints give no area; give one, as metadata or in the answer")
    return area


def _scale(canvas: Canvas | Media, frame: CoordinateFrame) -> float:
    """Square original pixels in a square unit of a frame."""
    width, height = frame_extent(frame, canvas)
    wide, high = frame_extent("original_pixels", canvas)
    return (wide / width) * (high / height)


def _sigmas(given: Sequence[float] | float | None, number: int) -> Sequence[float]:
    found = COCO_SIGMAS if given is None else [given] * number if isinstance(given, int | float) else given
    if len(found) != number:
        raise ConfigError(f"sigmas: {len(found)} for {number} keypoints; give one for each, or one number")
    if not all(sigma > 0 for sigma in found):
        raise ConfigError("sigmas must be above 0")
    return found


def _require_number_of(number: int) -> None:
    if not 0 < number <= MAX_KEYPOINTS:
        raise Unreadable(f"{number} keypoints; from 1 to {MAX_KEYPOINTS} are read")


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
