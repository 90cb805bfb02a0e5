"""Problems of visual/geometry about circles."""

from __future__ import annotations

import math

import numpy as np

from vlrl.envs.visual.drawing.draw import UNITS, around
from vlrl.envs.visual.drawing.figures import Figure, between, fitted
from vlrl.envs.visual.questions.triangles import ANGLE, TRIPLES, Problem, degrees, length

MIDDLE = (UNITS / 2, UNITS / 2)
RADIUS = 84.0
CENTRE = "O is the centre of the circle."


def inscribed(rng: np.random.Generator, figure: Figure) -> Problem:
    """The angle at the centre is twice the one at the rim."""
    at_rim = int(rng.integers(34, 71))
    turn = int(rng.integers(360))
    a, b = around(MIDDLE, RADIUS, turn - at_rim), around(MIDDLE, RADIUS, turn + at_rim)
    aside = min(20, at_rim - 22)  # no further, or a line would pass by O too closely
    c = around(MIDDLE, RADIUS, turn + 180 + int(rng.integers(-aside, aside + 1)))
    figure.circle(MIDDLE, RADIUS)
    figure.line(a, MIDDLE, b)
    figure.line(a, c, b)
    figure.point(MIDDLE, "O", around(MIDDLE, 10, turn))
    to_centre = bool(rng.integers(2))
    figure.angle(MIDDLE, a, b, "x" if to_centre else f"{2 * at_rim}°")
    figure.angle(c, a, b, f"{at_rim}°" if to_centre else "x")
    return f"{CENTRE} {ANGLE}", degrees(2 * at_rim if to_centre else at_rim)


def semicircle(rng: np.random.Generator, figure: Figure) -> Problem:
    """The angle over a diameter is a right one."""
    given = int(rng.integers(35, 56))
    turn = int(rng.integers(360))
    a, b = around(MIDDLE, RADIUS, turn), around(MIDDLE, RADIUS, turn + 180)
    c = around(MIDDLE, RADIUS, turn + 2 * given + 180)  # the angle at a is half of the one at the centre
    figure.circle(MIDDLE, RADIUS)
    figure.line(a, b, c, a)
    figure.point(MIDDLE, "O", c)
    figure.angle(a, b, c, f"{given}°")
    figure.angle(b, a, c, "x")
    return f"{CENTRE} {ANGLE}", degrees(90 - given)


def tangent(rng: np.random.Generator, figure: Figure) -> Problem:
    """A tangent stands upright on the radius."""
    right = int(rng.integers(30, 46))
    o, t, p, radius = _tangent(rng, right)
    figure.circle(o, radius)
    figure.line(o, t, p, o)
    figure.point(o, "O", between(t, p, 0.5))
    figure.point(t, "T", o)
    figure.point(p, "P", o)
    figure.angle(o, t, p, f"{90 - right}°")
    figure.angle(p, o, t, "x")
    return f"{CENTRE} PT touches it in T. {ANGLE}", degrees(right)


def two_tangents(rng: np.random.Generator, figure: Figure) -> Problem:
    """Two tangents from a point and an angle at the rim between where they touch."""
    half = int(rng.integers(22, 37))
    o, t, p, radius = _tangent(rng, half)
    turn = math.degrees(math.atan2(p[1] - o[1], p[0] - o[0]))
    side = math.degrees(math.atan2(t[1] - o[1], t[0] - o[0]))
    s, c = around(o, radius, 2 * turn - side), around(o, radius, turn + 180)
    figure.circle(o, radius)
    figure.line(t, p, s)
    figure.line(t, c, s)
    figure.point(o, "O", c)
    figure.point(t, "T", o)
    figure.point(s, "S", o)
    figure.angle(p, t, s, f"{2 * half}°")
    figure.angle(c, t, s, "x")
    return f"{CENTRE} The lines from the point outside touch it in S and T. {ANGLE}", degrees(90 - half)


def cyclic(rng: np.random.Generator, figure: Figure) -> Problem:
    """Opposite angles of four points on a circle add up to 180."""
    turn = int(rng.integers(360))
    given = int(rng.integers(70, 111))
    # the angle at the first corner is half of the arc from the second to the last
    near, far = int(rng.integers(80, 101)), int(rng.integers(80, 101))
    rest = 360 - 2 * given
    arcs = [rest * near / (near + far), 2 * given * far / (near + far)]
    places = [0.0, arcs[0], arcs[0] + arcs[1], 2 * given + arcs[0]]
    a, b, c, d = (around(MIDDLE, RADIUS, turn + place) for place in places)
    figure.circle(MIDDLE, RADIUS)
    figure.shape([a, b, c, d])
    figure.angle(a, b, d, f"{given}°")
    figure.angle(c, b, d, "x")
    return f"All four corners lie on the circle. {ANGLE}", degrees(180 - given)


def chord(rng: np.random.Generator, figure: Figure) -> Problem:
    """Half a chord, its distance from the centre and the radius make a right triangle."""
    legs = TRIPLES[int(rng.integers(len(TRIPLES)))]
    near, half, radius = legs
    turn = int(rng.integers(360))
    foot = around(MIDDLE, RADIUS * near / radius, turn)
    a, b = around(foot, RADIUS * half / radius, turn + 90), around(foot, RADIUS * half / radius, turn - 90)
    figure.circle(MIDDLE, RADIUS)
    figure.line(a, b)
    figure.dashes(MIDDLE, foot)
    figure.line(MIDDLE, a)
    figure.right_angle(foot, a, MIDDLE)
    figure.side(MIDDLE, foot, str(near), a)
    figure.side(MIDDLE, a, str(radius), foot)
    figure.point(MIDDLE, "O", foot)
    figure.side(a, b, "x", MIDDLE)
    return f"{CENTRE} How long is the whole chord x? Answer with a number.", length(2 * half)


def _tangent(
    rng: np.random.Generator, at_point: int
) -> tuple[tuple[float, float], tuple[float, float], tuple[float, float], float]:
    """(centre, point of touch, point outside, radius) of a tangent; the angle outside is given in degrees."""
    turn = int(rng.integers(360))
    flip = int(rng.choice((-1, 1)))
    far = 1 / math.sin(math.radians(at_point))
    o = (0.0, 0.0)
    p = around(o, far, turn)
    t = around(o, 1.0, turn + flip * (90 - at_point))
    extremes = [(1.0, 0.0), (-1.0, 0.0), (0.0, 1.0), (0.0, -1.0)]
    placed = fitted([o, t, p, *extremes], 172)
    return placed[0], placed[1], placed[2], math.dist(placed[0], placed[3])
