"""Drawing geometrical figures: sides, angles and points with labels that lie on no line."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from vlrl.envs.visual.drawing.draw import COLOURS, INK, PAPER, UNITS, Place, Sketch, around, shade

BLUE = COLOURS["blue"]
PALE = shade(BLUE, 0.86)
LABEL = 13.0
ARC = 14.0
_HALF_HIGH = 6.0  # of a label, with a little air
_AIR = 3.0


class Figure:
    """A figure in the making; places are in units of the image."""

    def __init__(self, image_size: int) -> None:
        self.image = Sketch(image_size, PAPER)

    def shape(self, corners: Sequence[Place]) -> None:
        """A filled polygon with its outline."""
        self.image.polygon(corners, PALE, BLUE, 2)

    def circle(self, centre: Place, radius: float) -> None:
        """A circle with its middle marked."""
        self.image.circle(centre, radius, PALE, BLUE, 2)
        self.image.circle(centre, 2.5, INK)

    def line(self, *places: Place) -> None:
        """A line through some places."""
        self.image.line(places, BLUE, 2)

    def dashes(self, start: Place, end: Place) -> None:
        """A dashed line."""
        num_dashes = max(2, round(math.dist(start, end) / 8))
        for index in range(num_dashes):
            ends = [between(start, end, (index + share) / num_dashes) for share in (0.2, 0.8)]
            self.image.line(ends, BLUE, 1.5)

    def equal(self, start: Place, end: Place) -> None:
        """The little stroke on a side that says it is as long as others with one."""
        middle = between(start, end, 0.5)
        across = direction(start, end) + 90
        self.image.line([around(middle, 5, across), around(middle, -5, across)], INK, 1.5)

    def right_angle(self, vertex: Place, one: Place, other: Place) -> None:
        """The little square of a right angle."""
        first, second = direction(vertex, one), direction(vertex, other)
        corner = around(around(vertex, 10, first), 10, second)
        self.image.line([around(vertex, 10, first), corner, around(vertex, 10, second)], INK, 1.2)

    def angle(self, vertex: Place, one: Place, other: Place, text: str) -> None:
        """The arc of the angle from `one` to `other`, below 180 degrees, with its label inside."""
        first, second = direction(vertex, one), direction(vertex, other)
        if (second - first) % 360 > 180:
            first, second = second, first
        width = (second - first) % 360
        self.image.arc(vertex, ARC, round(first), round(first + width), INK, 1.3)
        half = math.radians(width / 2)
        room = max(self._reach(text, first + 90), self._reach(text, second + 90)) + _AIR
        middle = first + width / 2
        far = max(room / math.sin(half), ARC + self._reach(text, middle) + _AIR)
        self.image.text(around(vertex, far, middle), text, LABEL)

    def side(self, start: Place, end: Place, text: str, away: Place) -> None:
        """The label of a line, beside its middle, on the side where `away` is not."""
        middle = between(start, end, 0.5)
        normal = direction(start, end) + 90
        probe = around(middle, 1, normal)
        if math.dist(probe, away) < math.dist(middle, away):
            normal += 180
        self.image.text(around(middle, self._reach(text, normal) + _AIR + 1, normal), text, LABEL)

    def point(self, place: Place, text: str, away: Place) -> None:
        """The label of a point, on the side where `away` is not."""
        to = direction(away, place)
        self.image.text(around(place, self._reach(text, to) + _AIR + 2, to), text, LABEL)

    def _reach(self, text: str, degrees: float) -> float:
        """How far a label reaches from its middle in a direction, and the opposite one."""
        angle = math.radians(degrees)
        half_wide = self.image.text_width(text, LABEL) / 2
        return abs(math.cos(angle)) * half_wide + abs(math.sin(angle)) * _HALF_HIGH


def between(start: Place, end: Place, share: float) -> Place:
    """The place so far along a line."""
    return start[0] + (end[0] - start[0]) * share, start[1] + (end[1] - start[1]) * share


def direction(start: Place, end: Place) -> float:
    """Degrees of a line, clockwise from three o'clock."""
    return math.degrees(math.atan2(end[1] - start[1], end[0] - start[0]))


def middle_of(places: Sequence[Place]) -> Place:
    """Their mean."""
    return sum(x for x, _ in places) / len(places), sum(y for _, y in places) / len(places)


def turned(rng: np.random.Generator, places: Sequence[Place], room: float = 152) -> list[Place]:
    """The same figure turned by any angle, enlarged to `room` units and put into the image's middle."""
    angle = math.radians(int(rng.integers(360)))
    cos, sin = math.cos(angle), math.sin(angle)
    return fitted([(x * cos - y * sin, x * sin + y * cos) for x, y in places], room)


def fitted(places: Sequence[Place], room: float = 152) -> list[Place]:
    """The same figure enlarged to `room` units and put into the image's middle."""
    xs, ys = [x for x, _ in places], [y for _, y in places]
    scale = room / max(max(xs) - min(xs), max(ys) - min(ys))
    x0, y0 = (min(xs) + max(xs)) / 2, (min(ys) + max(ys)) / 2
    return [(UNITS / 2 + (x - x0) * scale, UNITS / 2 + (y - y0) * scale) for x, y in places]


def triangle(at_first: float, at_second: float) -> list[Place]:
    """Corners of a triangle with these angles in degrees at its first two corners, whose side is 1 long."""
    at_third = math.radians(180 - at_first - at_second)
    length = math.sin(math.radians(at_second)) / math.sin(at_third)
    return [(0.0, 0.0), (1.0, 0.0), around((0.0, 0.0), length, -at_first)]
