"""Text in images can be read: it lies within the image, on plain ground, over no line and no text."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from PIL import ImageDraw

from vlrl.environment.open import open_env

NAMES = (
    "visual/charts",
    "visual/clocks",
    "visual/gauges",
    "visual/geometry",
    "visual/spatial",
    "visual/tables",
)
PLAIN = 24
"""Most that a colour varies below a text: more is a line, an edge or another letter."""


@pytest.fixture
def unreadable(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is wrong with the texts that were drawn; looks at the ground just before each one is."""
    found: list[str] = []
    draw_text = ImageDraw.ImageDraw.text

    def text(
        self: Any, place: Any, words: str, fill: Any = None, font: Any = None, anchor: Any = None
    ) -> None:
        x0, y0, x1, y1 = self.textbbox(place, words, font=font, anchor=anchor)
        box = math.floor(x0), math.floor(y0), math.ceil(x1), math.ceil(y1)
        image = self._image
        if box[0] < 0 or box[1] < 0 or box[2] > image.width or box[3] > image.height:
            found.append(f"{words!r} reaches out of the picture")
        else:
            ground = np.asarray(image.crop(box)).reshape(-1, 3)
            if len(ground) and int(np.ptp(ground, axis=0).max()) > PLAIN:
                found.append(f"{words!r} lies on something")
        draw_text(self, place, words, fill, font, anchor)

    monkeypatch.setattr(ImageDraw.ImageDraw, "text", text)
    return found


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("image_size", "num_seeds"), [(224, 80), (336, 40), (448, 12)])
def test_text_lies_on_plain_ground(name: str, image_size: int, num_seeds: int, unreadable: list[str]) -> None:
    env: Any = open_env(name, {"image_size": image_size})
    for level in range(1, env.num_levels + 1):
        for seed in range(num_seeds):
            env.reset({"level": level}, seed)
            assert not unreadable, f"{name} level {level} seed {seed}: {unreadable}"


def test_the_check_finds_a_text_on_a_line_and_one_outside(unreadable: list[str]) -> None:
    from vlrl.envs.visual.drawing.draw import INK, Sketch

    image = Sketch(224)
    image.line([(0, 50), (224, 50)], INK, 2)
    image.text((100, 50), "on a line")
    image.text((220, 100), "outside")
    image.text((100, 150), "well")
    image.text((110, 152), "over it")
    image.finish()
    assert unreadable == [
        "'on a line' lies on something",
        "'outside' reaches out of the picture",
        "'over it' lies on something",
    ]
