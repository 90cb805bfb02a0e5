"""Points and boxes with a typed frame: what "x = 500" means, for each model family, both ways.

A coordinate is a position on a continuous axis, not the index of a pixel: x = 0 is the left edge of the
image and the frame's extent its right edge, so pixel i covers [i, i + 1) and a box that covers the whole
image maps to the box that covers the whole image in every frame.

Conversion is exact arithmetic; only `quantise` rounds, half up, to the grain a model writes in.

Example: in an image of 640×480 that the model sees as 644×476,
    convert(Point(320, 120), "original_pixels", "resized_pixels", media)  Point(322, 119)
    convert(Point(320, 120), "original_pixels", "per_1000", media)        Point(500, 250)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeVar, get_args

from vlrl.errors import DataError

if TYPE_CHECKING:
    from vlrl.types import Media

CoordinateFrame = Literal["original_pixels", "resized_pixels", "per_1000", "per_999", "unit"]
"""original_pixels: of the file, upright, before resizing; extent its width and height.
resized_pixels: of the image as the model sees it; extent Media.size.
per_1000: share of the image's side times 1000; 1000 is the far edge.
per_999: the same with 999 as the far edge, for models that must write three digits.
unit: share of the image's side; 1 is the far edge."""

FRAMES: tuple[CoordinateFrame, ...] = get_args(CoordinateFrame)

FAMILY_FRAMES: Mapping[str, CoordinateFrame] = {
    "qwen2_vl": "per_1000",  # QwenLM/Qwen3-VL, qwen-vl-finetune/tools/process_bbox.ipynb
    "qwen2_5_vl": "resized_pixels",  # the same notebook; arXiv 2502.13923, absolute coordinates
    "qwen3_vl": "per_1000",  # QwenLM/Qwen3-VL issue 1486
    "qwen3_vl_moe": "per_1000",
    "internvl": "per_1000",  # InternVL's documentation, "Chat Data Format"
    "glm4v": "per_1000",  # zai-org/GLM-V: x = round(x_pixel / width · 1000)
    "glm4v_moe": "per_1000",
    "minicpmv4_6": "per_1000",  # OpenBMB/MiniCPM-V issue 982, of 4.5
    "kimi_vl": "unit",  # MoonshotAI/Kimi-VL issue 56
}
"""model_type → the frame its published weights were taught. A family that is not here was taught none that is
documented: say which one you train it on."""

_EXTENTS: Mapping[CoordinateFrame, float] = {"per_1000": 1000.0, "per_999": 999.0, "unit": 1.0}
_GRAINS: Mapping[CoordinateFrame, int] = {"unit": 1000}


@dataclass(frozen=True, slots=True)
class Point:
    """A position, x to the right and y down from the image's top left corner."""

    x: float
    y: float

    def map(self, axis_x: Callable[[float], float], axis_y: Callable[[float], float]) -> Point:
        """The point with a function applied along each axis."""
        return Point(axis_x(self.x), axis_y(self.y))


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle from its top left corner (x0, y0) to its bottom right corner (x1, y1).

    Raises:
        DataError: if a corner is not finite, or the corners are not in that order.
    """

    x0: float
    y0: float
    x1: float
    y1: float

    def __post_init__(self) -> None:
        corners = (self.x0, self.y0, self.x1, self.y1)
        if not all(map(math.isfinite, corners)):
            raise DataError(f"box {corners}: every corner must be a finite number")
        if self.x0 > self.x1 or self.y0 > self.y1:
            raise DataError(f"box {corners}: corners are (x0, y0, x1, y1) with x0 ≤ x1 and y0 ≤ y1")

    def map(self, axis_x: Callable[[float], float], axis_y: Callable[[float], float]) -> Box:
        """The box with a rising function applied along each axis."""
        return Box(axis_x(self.x0), axis_y(self.y0), axis_x(self.x1), axis_y(self.y1))


Shape = TypeVar("Shape", Point, Box)


@dataclass(frozen=True, slots=True)
class Canvas:
    """What a place needs to know of its image: a Media without pixels, quickly sent to another process.

    Attributes:
        original_size: (height, width) in pixels before resizing.
        size: (height, width) in pixels as the model sees it.
        coordinate_frame: see Media.coordinate_frame.
    """

    original_size: tuple[int, int]
    size: tuple[int, int]
    coordinate_frame: str = ""

    @classmethod
    def of(cls, media: Media) -> Canvas:
        """The medium's own."""
        return cls(media.original_size, media.size, media.coordinate_frame)


def convert(
    shape: Shape, source: CoordinateFrame, target: CoordinateFrame, media: Media, *, clamp: bool = False
) -> Shape:
    """Say the same place in another frame, through the medium's own transform; nothing is rounded.

    Args:
        shape: a point or a box.
        source: the frame it is given in.
        target: the frame that is wanted.
        media: the image or video it lies on.
        clamp: move what lies outside the image onto its edge, instead of refusing it.

    Raises:
        DataError: for a value that is not finite, or outside the source frame without `clamp`.
    """
    width, height = frame_extent(source, media)
    inside = shape.map(
        lambda x: _within(x, width, source, "x", clamp), lambda y: _within(y, height, source, "y", clamp)
    )
    if source == target:
        return inside
    return inside.map(
        lambda x: _from_resized(*_to_resized(x, 0.0, source, media), target, media)[0],
        lambda y: _from_resized(*_to_resized(0.0, y, source, media), target, media)[1],
    )


def quantise(shape: Shape, frame: CoordinateFrame) -> Shape:
    """Round to what a model writes: whole numbers, thousandths for `unit`. Halves go up (0.5 → 1, 2.5 → 3).

    The result stays within the frame and boxes keep their order, since every extent is itself on the grid
    and rounding never falls.
    """
    grain = _GRAINS.get(frame, 1)
    return shape.map(lambda x: _half_up(x, grain), lambda y: _half_up(y, grain))


def frame_extent(frame: CoordinateFrame, media: Media | Canvas) -> tuple[float, float]:
    """(largest x, largest y) of a frame: the image's far edges."""
    if frame == "original_pixels":
        height, width = media.original_size
    elif frame == "resized_pixels":
        height, width = media.size
    else:
        return _EXTENTS[frame], _EXTENTS[frame]
    return float(width), float(height)


def _within(value: float, extent: float, frame: CoordinateFrame, axis: str, clamp: bool) -> float:
    if not math.isfinite(value):
        raise DataError(f"{axis}={value} is not a finite number")
    if 0 <= value <= extent:
        return value
    if clamp:
        return min(max(value, 0.0), extent)
    raise DataError(
        f"{axis}={value:g} lies outside the frame {frame} of this image, 0 to {extent:g}; "
        "check which frame the data is in, or clamp it"
    )


def _to_resized(x: float, y: float, source: CoordinateFrame, media: Media) -> tuple[float, float]:
    if source == "resized_pixels":
        return x, y
    if source == "original_pixels":
        return media.to_model(x, y)
    (width, height), (wide, high) = frame_extent(source, media), frame_extent("resized_pixels", media)
    return x / width * wide, y / height * high


def _from_resized(x: float, y: float, target: CoordinateFrame, media: Media) -> tuple[float, float]:
    if target == "resized_pixels":
        return x, y
    if target == "original_pixels":
        return media.to_original(x, y)
    (width, height), (wide, high) = frame_extent(target, media), frame_extent("resized_pixels", media)
    return x / wide * width, y / high * height


def _half_up(value: float, grain: int) -> float:
    """Round to 1/grain; round() would send halves to the even neighbour."""
    return math.floor(value * grain + 0.5) / grain
