"""visual/geometry: problems with a diagram, after those of schoolbooks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

import numpy as np

from vlrl.envs.visual.answers import Number
from vlrl.envs.visual.drawing.figures import Figure
from vlrl.envs.visual.question import Question, QuestionEnv
from vlrl.envs.visual.questions import circles, triangles


class Geometry(QuestionEnv):
    """Shows a figure with some of its angles and lengths, and asks for another one.

    Levels: 1, the third angle of a triangle, angles on a line, rectangles; 2, Pythagoras, isosceles
    triangles, areas of triangles; 3, similar triangles, parallels, exterior angles; 4, the angle at the rim
    and at the centre of a circle, over a diameter, at a tangent; 5, four points on a circle, chords, two
    tangents, a rectangle without a corner.

    Figures are true to scale and turned at random; answers are whole numbers. Reward 1 for the right number,
    else 0. Chance scores about 0.02, the most frequent answer below 0.1.
    """

    name: ClassVar[str] = "visual/geometry"

    def ask(self, rng: np.random.Generator, level: int) -> Question:
        """One of the level's problems."""
        problems = _PROBLEMS[level]
        problem = problems[int(rng.integers(len(problems)))]
        figure = Figure(self.image_size)
        text, answer = problem(rng, figure)
        return Question(text, answer, [figure.image.finish()], metadata={"problem": problem.__name__})


_PROBLEMS: Mapping[int, Sequence[Callable[[np.random.Generator, Figure], tuple[str, Number]]]] = {
    1: (triangles.third_angle, triangles.angle_on_line, triangles.rectangle_area),
    2: (triangles.pythagoras, triangles.isosceles, triangles.triangle_area),
    3: (triangles.similar, triangles.parallels, triangles.exterior),
    4: (circles.inscribed, circles.semicircle, circles.tangent),
    5: (circles.cyclic, circles.chord, circles.two_tangents, triangles.corner_area),
}
