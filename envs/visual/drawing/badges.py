"""Flat shapes in one colour, for images and videos in which many of them lie about."""

from __future__ import annotations

from collections.abc import Sequence

from vlrl.envs.visual.drawing.draw import Colour, Place, Sketch, around

SHAPES = ("circle", "square", "triangle", "diamond", "star", "cross")


def paint_badge(image: Sketch, shape: str, fill: Colour) -> None:
    """Fill a field of 100 by 100 units with one of SHAPES."""
    if shape == "circle":
        image.circle((50, 50), 46, fill)
    elif shape == "cross":
        image.rectangle((27, 4, 73, 96), fill)
        image.rectangle((4, 27, 96, 73), fill)
    else:
        image.polygon(_corners(shape), fill)


def _corners(shape: str) -> Sequence[Place]:
    if shape == "square":
        return [(8, 8), (92, 8), (92, 92), (8, 92)]
    if shape == "triangle":
        return [(50, 2), (98, 92), (2, 92)]
    if shape == "diamond":
        return [(50, 0), (100, 50), (50, 100), (0, 50)]
    return [around((50, 53), 53 if i % 2 == 0 else 29, 36 * i - 90) for i in range(10)]
