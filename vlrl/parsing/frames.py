"""Where a model's places lie on the image: from the frame it writes in to the image's own pixels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from vlrl.coordinates import FRAMES, Box, Canvas, CoordinateFrame, Point, frame_extent
from vlrl.errors import ConfigError
from vlrl.parsing.geometry import BoxTuple, PointTuple
from vlrl.types import Media

Shape = TypeVar("Shape", Point, Box)

SLACK = 0.01
"""Share of the image's side by which a sample's answer may stick out of it: annotations are rounded."""


@dataclass(frozen=True, slots=True)
class AnswerFrames:
    """One image and the two frames that speak of it; everything is compared in its original pixels.

    Attributes:
        canvas: the image or video.
        written: the frame the model writes in.
        answered: the frame the sample's answer is in.
    """

    canvas: Canvas | Media
    written: CoordinateFrame
    answered: CoordinateFrame

    @property
    def diagonal(self) -> float:
        """The image's diagonal, in original pixels."""
        return math.hypot(*self.canvas.original_size)

    def said(self, shape: Shape) -> Shape:
        """What the model wrote, in original pixels; what sticks out of the image goes on sticking out."""
        return self._to_original(shape, self.written)

    def true(self, shape: Shape) -> Shape:
        """The sample's answer, in original pixels, moved to the image's edge where it sticks out a little.

        Raises:
            ValueError: if it lies outside the image by more than SLACK: it is in another frame.
        """
        width, height = frame_extent(self.answered, self.canvas)
        inside = shape.map(lambda x: _on_edge(x, width), lambda y: _on_edge(y, height))
        for value, extent in zip(_numbers(inside), (width, height) * 2, strict=False):
            if not 0 <= value <= extent:
                raise ValueError(
                    f"the sample's answer holds {value:g}, outside the frame {self.answered} of this image "
                    f"(0 to {extent:g}); answer_frame says which frame it is in"
                )
        return self._to_original(inside, self.answered)

    def _to_original(self, shape: Shape, frame: CoordinateFrame) -> Shape:
        if frame == "original_pixels":
            return shape
        width, height = frame_extent(frame, self.canvas)
        wide, high = frame_extent("original_pixels", self.canvas)
        return shape.map(lambda x: x / width * wide, lambda y: y / height * high)


def open_frames(
    canvases: Sequence[Canvas | Media],
    media_index: int,
    frame: CoordinateFrame | None,
    answer_frame: CoordinateFrame,
) -> AnswerFrames:
    """The image that a sample's places lie on, and their frames.

    Args:
        canvases: of the sample's images and videos.
        media_index: which of them; negative from the end.
        frame: the model writes in; None is what its family was taught.
        answer_frame: of the sample's answer.

    Raises:
        ConfigError: for a frame that does not exist, or none given for a family that was taught none.
        ValueError: if the sample has no such medium.
    """
    if not -len(canvases) <= media_index < len(canvases):
        raise ValueError(f"media_index={media_index}, but the sample has {len(canvases)} images and videos")
    seen = canvases[media_index]
    written = frame or seen.coordinate_frame
    for option, value in (("frame", written), ("answer_frame", answer_frame)):
        if value not in FRAMES:
            what = "the model's family was taught none" if not value else f"{value!r} is none"
            raise ConfigError(f"{option}: {what}; give one of {', '.join(FRAMES)}")
    return AnswerFrames(seen, written, answer_frame)  # type: ignore[arg-type]


def box_tuple(box: Box) -> BoxTuple:
    """(x0, y0, x1, y1)."""
    return box.x0, box.y0, box.x1, box.y1


def point_tuple(point: Point) -> PointTuple:
    """(x, y)."""
    return point.x, point.y


def _numbers(shape: Point | Box) -> tuple[float, ...]:
    """Its x and y in turn."""
    return box_tuple(shape) if isinstance(shape, Box) else point_tuple(shape)


def _on_edge(value: float, extent: float) -> float:
    """A value a little outside [0, extent] moved to its end."""
    slack = SLACK * extent
    return min(max(value, 0.0), extent) if -slack <= value <= extent + slack else value
