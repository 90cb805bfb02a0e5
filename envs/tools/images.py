"""Tools that look closer at an image, turn it, or draw on it.

A model names places in the image as it was shown, or in a frame that its family was taught (option
`frame`); what is cut out comes from the image as it was before it was shrunken for the model.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Literal, TypeAlias

from PIL import Image, ImageDraw, ImageFont
from pydantic import Field

from vlrl.coordinates import FRAMES, Canvas, CoordinateFrame, frame_extent
from vlrl.envs.tools.declare import ToolError, tool
from vlrl.errors import ConfigError

BoxArgument: TypeAlias = Annotated[list[float], Field(min_length=4, max_length=4)]
Colour: TypeAlias = Literal["red", "green", "blue", "yellow", "black", "white"]

MAX_PIXELS = 1 << 24
"""Largest image that a tool makes."""
MAX_ASPECT = 100
"""A cut-out is at most so many times as long as wide: image processors refuse narrower ones."""

_NOTES: dict[CoordinateFrame, str] = {
    "resized_pixels": "Coordinates are pixels of the image as shown, from its top left corner.",
    "original_pixels": "Coordinates are pixels of the image's file, from its top left corner.",
    "per_1000": "Coordinates run from 0 to 1000 along both sides of the image, from its top left corner.",
    "per_999": "Coordinates run from 0 to 999 along both sides of the image, from its top left corner.",
    "unit": "Coordinates run from 0 to 1 along both sides of the image, from its top left corner.",
}


class ImageTool:
    """What the tools that take places share: which image, and where in it."""

    def __init__(self, frame: CoordinateFrame = "resized_pixels") -> None:
        """Say what coordinates mean.

        Args:
            frame: see `vlrl.coordinates.CoordinateFrame`. "resized_pixels" are those of the
                image as the environment showed it.
        """
        if frame not in FRAMES:
            raise ConfigError(f"frame={frame!r} is not one of {', '.join(FRAMES)}")
        self.frame: CoordinateFrame = frame
        self.note = _NOTES[frame]

    def _box(self, box: Sequence[float], canvas: Canvas) -> tuple[int, int, int, int]:
        """A box in whole pixels of the original that covers it.

        Raises:
            ToolError: if it is empty, leaves the image, or is too narrow.
        """
        x0, y0, x1, y1 = box
        if x0 >= x1 or y0 >= y1:
            raise ToolError(f"the box {_written(box)} is empty; it is [left, top, right, bottom]")
        (left, top), (right, bottom) = self._point((x0, y0), canvas), self._point((x1, y1), canvas)
        whole = math.floor(left), math.floor(top), math.ceil(right), math.ceil(bottom)
        sides = whole[2] - whole[0], whole[3] - whole[1]
        if max(sides) > MAX_ASPECT * min(sides):
            raise ToolError(f"the box {_written(box)} is more than {MAX_ASPECT} times as long as wide")
        return whole

    def _point(self, point: tuple[float, float], canvas: Canvas) -> tuple[float, float]:
        """A point in pixels of the original.

        Raises:
            ToolError: if it lies outside.
        """
        wide, high = frame_extent(self.frame, canvas)
        x, y = point
        if not (0 <= x <= wide and 0 <= y <= high):
            limits = f"x is from 0 to {wide:g} and y from 0 to {high:g}"
            raise ToolError(f"{_written(point)} lies outside the image: {limits}")
        height, width = canvas.original_size
        return x * width / wide, y * height / high


class Crop(ImageTool):
    """Cuts a part out of an image, at the resolution that it has."""

    def __call__(
        self, box: BoxArgument, images: list[Image.Image], canvases: list[Canvas], image_number: int = 1
    ) -> Image.Image:
        """Cut a part out of an image.

        Args:
            box: left, top, right and bottom edge of the part.
            images: images seen so far.
            canvases: their sizes.
            image_number: number of the image, counted from 1 in the order in which they were shown.
        """
        index = pick(image_number, images)
        return images[index].crop(self._box(box, canvases[index]))


class Zoom(ImageTool):
    """Enlarges a part of an image."""

    def __init__(self, frame: CoordinateFrame = "resized_pixels", side: int = 448) -> None:
        """Say what coordinates mean, and how large the result is.

        Args:
            frame: as for the other tools.
            side: longer side of the result in pixels.
        """
        super().__init__(frame)
        if not 1 <= side <= math.isqrt(MAX_PIXELS):
            raise ConfigError(f"zoom: side={side} must be from 1 to {math.isqrt(MAX_PIXELS)} pixels")
        self._side = side

    def __call__(
        self, box: BoxArgument, images: list[Image.Image], canvases: list[Canvas], image_number: int = 1
    ) -> Image.Image:
        """Enlarge a part of an image to see its details.

        Args:
            box: left, top, right and bottom edge of the part.
            images: images seen so far.
            canvases: their sizes.
            image_number: number of the image, counted from 1 in the order in which they were shown.
        """
        index = pick(image_number, images)
        return zoomed(images[index], self._box(box, canvases[index]), self._side)


@tool
def rotate(
    degrees: Annotated[float, Field(ge=-360, le=360)], images: list[Image.Image], image_number: int = 1
) -> Image.Image:
    """Turn an image clockwise; all of it stays in view, on white.

    Args:
        degrees: by how much.
        images: images seen so far.
        image_number: number of the image, counted from 1 in the order in which they were shown.
    """
    source = images[pick(image_number, images)]
    sine, cosine = abs(math.sin(math.radians(degrees))), abs(math.cos(math.radians(degrees)))
    width, height = source.size
    if (width * cosine + height * sine) * (width * sine + height * cosine) > MAX_PIXELS:
        raise ToolError("the turned image would be too large; crop it first")
    return source.rotate(-degrees, Image.Resampling.BICUBIC, expand=True, fillcolor="white")


@tool
def flip(
    direction: Literal["horizontal", "vertical"], images: list[Image.Image], image_number: int = 1
) -> Image.Image:
    """Mirror an image.

    Args:
        direction: horizontal swaps left and right, vertical swaps top and bottom.
        images: images seen so far.
        image_number: number of the image, counted from 1 in the order in which they were shown.
    """
    flips = {"horizontal": Image.Transpose.FLIP_LEFT_RIGHT, "vertical": Image.Transpose.FLIP_TOP_BOTTOM}
    return images[pick(image_number, images)].transpose(flips[direction])


class Draw(ImageTool):
    """Draws one shape on a copy of an image."""

    def __call__(
        self,
        shape: Literal["box", "line", "point", "text"],
        at: Annotated[list[float], Field(min_length=2, max_length=4)],
        images: list[Image.Image],
        canvases: list[Canvas],
        text: Annotated[str, Field(max_length=100)] = "",
        colour: Colour = "red",
        image_number: int = 1,
    ) -> Image.Image:
        """Draw on an image; the result is a new image.

        Args:
            shape: what to draw.
            at: left, top, right and bottom edge of a box; x, y of a line's start and of its end; x, y of a
                point or of a text's top left corner.
            text: what to write, for the shape text.
            colour: of the shape.
            images: images seen so far.
            canvases: their sizes.
            image_number: number of the image, counted from 1 in the order in which they were shown.
        """
        index = pick(image_number, images)
        copy, canvas = images[index], canvases[index]
        numbers = 4 if shape in ("box", "line") else 2
        if len(at) != numbers:
            raise ToolError(f'"at" must be {numbers} numbers for a {shape}, not {len(at)}')
        if shape == "box":
            self._box(at, canvas)
        points = [self._point((at[i], at[i + 1]), canvas) for i in range(0, numbers, 2)]
        # As wide on every image once it is shown, and never invisible.
        width = max(1, round(max(canvas.original_size) / 150))
        pen = ImageDraw.Draw(copy)
        if shape == "box":
            (left, top), (right, bottom) = points
            pen.rectangle(
                (left, top, max(left, right - 1), max(top, bottom - 1)), outline=colour, width=width
            )
        elif shape == "line":
            pen.line(points, fill=colour, width=width)
        elif shape == "point":
            pen.circle(points[0], 2 * width, fill=colour)
        else:
            pen.text(points[0], text, fill=colour, font=ImageFont.load_default(10 * width))
        return copy


def zoomed(image: Image.Image, box: tuple[int, int, int, int], side: int) -> Image.Image:
    """A part of an image, resized so that its longer side is `side` pixels and its shape stays."""
    width, height = box[2] - box[0], box[3] - box[1]
    scale = side / max(width, height)
    size = max(1, round(width * scale)), max(1, round(height * scale))
    return image.resize(size, Image.Resampling.BICUBIC, box=box)


def pick(image_number: int, images: Sequence[Image.Image]) -> int:
    """The index of an image that a model numbers from 1.

    Raises:
        ToolError: if there is none of that number.
    """
    if not 1 <= image_number <= len(images):
        raise ToolError(f"there is no image {image_number}; so far there are {len(images)}, counted from 1")
    return image_number - 1


def _written(numbers: Sequence[float]) -> str:
    return "[" + ", ".join(f"{number:g}" for number in numbers) + "]"
