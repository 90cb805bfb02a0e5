"""Problems of visual/geometry about angles, triangles and areas."""

from __future__ import annotations

import math

import numpy as np

from vlrl.envs.visual.answers import Number
from vlrl.envs.visual.drawing.draw import around
from vlrl.envs.visual.drawing.figures import Figure, between, direction, middle_of, triangle, turned

Problem = tuple[str, Number]
ANGLE = "How many degrees is the angle x? Answer with a number."
LENGTH = "How long is the side x? Answer with a number."
TRIPLES = (
    (3, 4, 5),
    (6, 8, 10),
    (5, 12, 13),
    (9, 12, 15),
    (8, 15, 17),
    (12, 16, 20),
    (15, 20, 25),
    (20, 21, 29),
)


def degrees(value: float) -> Number:
    """An answer in degrees."""
    return Number(value, 20, 160, unit="degree")


def length(value: float) -> Number:
    """An answer that is a length."""
    return Number(value, 2, 30)


def area(value: float) -> Number:
    """An answer that is an area."""
    return Number(value, 6, 150)


def third_angle(rng: np.random.Generator, figure: Figure) -> Problem:
    """Third angle of a triangle whose other two are given."""
    first, second = _two_angles(rng)
    a, b, c = turned(rng, triangle(first, second))
    figure.shape([a, b, c])
    figure.angle(a, b, c, f"{first}°")
    figure.angle(b, a, c, f"{second}°")
    figure.angle(c, a, b, "x")
    return ANGLE, degrees(180 - first - second)


def angle_on_line(rng: np.random.Generator, figure: Figure) -> Problem:
    """Two angles make a straight one."""
    given = int(rng.integers(35, 146))
    a, o, b = turned(rng, [(-1, 0), (0, 0), (1, 0)], 170)
    c = around(o, 80, direction(o, a) + given)
    figure.line(a, o, b)
    figure.line(o, c)
    figure.angle(o, a, c, f"{given}°")
    figure.angle(o, c, b, "x")
    return f"The longer line is straight. {ANGLE}", degrees(180 - given)


def rectangle_area(rng: np.random.Generator, figure: Figure) -> Problem:
    """Or its perimeter."""
    wide, high = _two_lengths(rng, 3, 12)
    corners = turned(rng, [(0, 0), (wide, 0), (wide, high), (0, high)], 156)
    figure.shape(corners)
    middle = middle_of(corners)
    figure.side(corners[0], corners[1], str(wide), middle)
    figure.side(corners[1], corners[2], str(high), middle)
    figure.right_angle(corners[3], corners[0], corners[2])
    if rng.integers(2):
        return "What is the area of the rectangle? Answer with a number.", area(wide * high)
    return "What is the perimeter of the rectangle? Answer with a number.", area(2 * (wide + high))


def pythagoras(rng: np.random.Generator, figure: Figure) -> Problem:
    """The third side of a right triangle; all are whole numbers."""
    sides = TRIPLES[int(rng.integers(len(TRIPLES)))]
    unknown = int(rng.integers(3))
    labels = ["x" if index == unknown else str(side) for index, side in enumerate(sides)]
    o, a, b = turned(rng, [(0, 0), (sides[0], 0), (0, sides[1])])
    figure.shape([o, a, b])
    figure.right_angle(o, a, b)
    middle = middle_of([o, a, b])
    for (start, end), text in zip(((o, a), (o, b), (a, b)), labels, strict=True):
        figure.side(start, end, text, middle)
    return LENGTH, length(sides[unknown])


def isosceles(rng: np.random.Generator, figure: Figure) -> Problem:
    """An angle of a triangle with two equal sides."""
    base = int(rng.integers(35, 71))
    a, b, c = turned(rng, triangle(base, base))
    figure.shape([a, b, c])
    figure.equal(a, c)
    figure.equal(b, c)
    to_apex = bool(rng.integers(2))
    figure.angle(a, b, c, f"{base}°" if to_apex else "x")
    figure.angle(c, a, b, "x" if to_apex else f"{180 - 2 * base}°")
    return f"Sides with a stroke are equally long. {ANGLE}", degrees(180 - 2 * base if to_apex else base)


def triangle_area(rng: np.random.Generator, figure: Figure) -> Problem:
    """Half of base times height."""
    high = int(rng.integers(4, 11))
    base = 2 * int(rng.integers(max(3, (high + 1) // 2), 8))
    foot = base * float(rng.choice((0.3, 0.4, 0.6, 0.7)))
    a, b, c, d = turned(rng, [(0, 0), (base, 0), (foot, high), (foot, 0)])
    figure.shape([a, b, c])
    figure.dashes(c, d)
    near, far = (a, b) if foot < base / 2 else (b, a)
    figure.right_angle(d, far, c)
    figure.side(a, b, str(base), c)
    figure.side(d, c, str(high), near)
    return "What is the area of the triangle? Answer with a number.", area(base * high / 2)


def similar(rng: np.random.Generator, figure: Figure) -> Problem:
    """A line parallel to a triangle's side cuts off a smaller one of the same shape."""
    part, whole = ((1, 2), (1, 3), (2, 3), (2, 5), (3, 5), (3, 4))[int(rng.integers(6))]
    unit = int(rng.integers(3, 6))
    base_unit = unit + int(rng.integers(-1, 2))  # not so long and narrow that a label has no room
    corner = around((0, 0), whole * unit, -int(rng.integers(55, 96)))
    a, b, c = turned(rng, [(0, 0), (whole * base_unit, 0), corner], 160)
    share = part / whole
    d, e = between(c, a, share), between(c, b, share)
    figure.shape([a, b, c])
    figure.line(d, e)
    middle = middle_of([a, b, c])
    figure.side(c, d, str(part * unit), middle)
    figure.side(d, a, str((whole - part) * unit), middle)
    figure.side(a, b, "x", middle)
    figure.side(d, e, str(part * base_unit), c if share < 0.5 else middle_of([a, b]))
    return f"The line inside is parallel to the side x. {LENGTH}", length(whole * base_unit)


def parallels(rng: np.random.Generator, figure: Figure) -> Problem:
    """A line that crosses two parallels: equal angles, or angles that add up to 180."""
    given = int(rng.integers(50, 131))
    a, b, c, d, p, q = turned(rng, [(-1, -0.4), (1, -0.4), (-1, 0.4), (1, 0.4), (0, -0.4), (0, 0.4)], 180)
    along = direction(a, b)
    shift = math.dist(p, q) / 2 / math.tan(math.radians(given))
    p, q = around(p, shift, along), around(q, -shift, along)
    figure.line(a, b)
    figure.line(c, d)
    ends = around(p, 34, direction(q, p)), around(q, 34, direction(p, q))
    figure.line(*ends)
    figure.angle(p, b, ends[0], f"{given}°")
    if rng.integers(2):
        figure.angle(q, d, p, "x")
        return f"Two of the lines are parallel. {ANGLE}", degrees(given)
    figure.angle(q, c, p, "x")
    return f"Two of the lines are parallel. {ANGLE}", degrees(180 - given)


def exterior(rng: np.random.Generator, figure: Figure) -> Problem:
    """The angle beside a triangle is the sum of the two far ones."""
    first, second = _two_angles(rng)
    a, b, c, end = turned(rng, [*triangle(first, second), (1.55, 0.0)], 180)
    figure.shape([a, b, c])
    figure.line(b, end)
    figure.angle(a, b, c, f"{first}°")
    figure.angle(c, a, b, f"{180 - first - second}°")
    figure.angle(b, end, c, "x")
    return ANGLE, degrees(180 - second)


def corner_area(rng: np.random.Generator, figure: Figure) -> Problem:
    """A rectangle without one of its corners."""
    wide, high = int(rng.integers(8, 13)), int(rng.integers(8, 13))
    cut_wide, cut_high = int(rng.integers(4, wide - 3)), int(rng.integers(4, high - 3))
    x, y = wide - cut_wide, cut_high
    a, b, c, d, e, f = turned(rng, [(0, 0), (x, 0), (x, y), (wide, y), (wide, high), (0, high)], 156)
    figure.shape([a, b, c, d, e, f])
    figure.side(f, e, str(wide), c)
    figure.side(a, f, str(high), c)
    figure.side(b, c, str(cut_high), a)
    figure.side(c, d, str(cut_wide), e)
    text = "All corners are right angles. What is the area of the figure? Answer with a number."
    return text, area(wide * high - cut_wide * cut_high)


def _two_angles(rng: np.random.Generator, least: int = 38) -> tuple[int, int]:
    """Two angles of a triangle none of which is below `least`."""
    first = int(rng.integers(least, 181 - 2 * least))
    return first, int(rng.integers(least, 181 - least - first))


def _two_lengths(rng: np.random.Generator, low: int, high: int) -> tuple[int, int]:
    """Two different lengths, neither more than 2.5 times the other."""
    one = int(rng.integers(low, high + 1))
    others = [other for other in range(low, high + 1) if other != one and one / 2.5 <= other <= one * 2.5]
    return one, others[int(rng.integers(len(others)))]
