"""Landscapes no two parts of which look alike: images to be cut into pieces."""

from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np

from vlrl.envs.visual.drawing.draw import COLOURS, WHITE, Colour, Sketch, shade
from vlrl.types import ByteArray

SKIES: tuple[tuple[Colour, Colour, Colour, Colour], ...] = (
    ((36, 70, 150), (250, 150, 90), (150, 200, 240), (255, 225, 150)),
    ((20, 40, 90), (150, 60, 140), (90, 150, 200), (250, 170, 150)),
    ((90, 170, 230), (60, 120, 120), (240, 240, 210), (170, 220, 150)),
    ((150, 60, 70), (70, 40, 110), (250, 200, 110), (220, 120, 160)),
)
"""Colours of the sky: upper left, upper right, lower left, lower right."""

MIN_DIFFERENCE = 8.0
"""Of any two pieces; see `difference`."""

_GRAIN = 8  # units: side of the sky's squares


def scenery(rng: np.random.Generator, size: int, shape: tuple[int, int]) -> ByteArray:
    """A landscape to be cut into `shape` (rows, columns) of pieces that all differ: [size, size, 3] uint8.

    The sky's colour changes along both axes, so that the place of a piece of it can be recognised.
    """
    while True:
        image = _landscape(rng, size)
        if difference(image, shape) >= MIN_DIFFERENCE:
            return image


def difference(image: ByteArray, shape: tuple[int, int]) -> float:
    """How far the two most similar pieces of an image differ: mean over pixels and colours, of 255."""
    (rows, columns), (height, width) = shape, image.shape[:2]
    high, wide = height // rows, width // columns
    # Seen coarsely: what counts is what is seen at a glance.
    pieces = [
        image[row * high : (row + 1) * high : 4, column * wide : (column + 1) * wide : 4].astype(np.int16)
        for row in range(rows)
        for column in range(columns)
    ]
    return min(float(np.abs(one - other).mean()) for one, other in combinations(pieces, 2))


def _landscape(rng: np.random.Generator, size: int) -> ByteArray:
    image = Sketch(size)
    _sky(image, SKIES[int(rng.integers(len(SKIES)))])
    x, y, radius = rng.integers((40, 34, 16), (184, 80, 30)).tolist()
    image.circle((x, y), radius + 7, shade(COLOURS["yellow"], 0.55))
    image.circle((x, y), radius, shade(COLOURS["yellow"], 0.15))
    for _ in range(3):
        _cloud(image, int(rng.integers(10, 200)), int(rng.integers(18, 100)), int(rng.integers(7, 13)))
    tones = [COLOURS[name] for name in rng.permutation(["green", "cyan", "purple", "brown", "gray"])[:3]]
    for index, tone in enumerate(tones):
        _hills(image, rng, tone, 112 + 34 * index)
    for _ in range(4):
        _tree(image, int(rng.integers(10, 214)), int(rng.integers(165, 210)), int(rng.integers(9, 17)))
    _house(image, int(rng.integers(30, 170)), int(rng.integers(160, 200)), rng)
    return image.finish()


def _sky(image: Sketch, corners: tuple[Colour, Colour, Colour, Colour]) -> None:
    num = 224 // _GRAIN
    share = (np.arange(num) + 0.5) / num
    across, down = share[None, :, None], share[:, None, None]
    upper_left, upper_right, lower_left, lower_right = (np.array(corner) for corner in corners)
    upper = upper_left + (upper_right - upper_left) * across
    lower = lower_left + (lower_right - lower_left) * across
    colours = np.floor(upper + (lower - upper) * down + 0.5).astype(int).tolist()
    for row, line in enumerate(colours):
        for column, (red, green, blue) in enumerate(line):
            x, y = column * _GRAIN, row * _GRAIN
            image.rectangle((x, y, x + _GRAIN, y + _GRAIN), (red, green, blue))


def _cloud(image: Sketch, x: int, y: int, size: int) -> None:
    for right, down, share in ((-1.1, 0.2, 0.7), (0, -0.3, 1.0), (1.1, 0.1, 0.8), (2, 0.4, 0.5)):
        image.circle((x + right * size, y + down * size), size * share, shade(WHITE, -0.03))


def _hills(image: Sketch, rng: np.random.Generator, tone: Colour, horizon: int) -> None:
    peaks = [(x, horizon + int(rng.integers(-26, 18))) for x in range(-20, 280, 40)]
    image.polygon([(-30, 230), *peaks, (260, 230)], shade(tone, -0.25), shade(tone, -0.5), 1.5)
    for (left, left_y), (right, right_y) in pairwise(peaks):
        if left_y < right_y:
            image.polygon([(left, left_y), (right, right_y), (left, right_y + 26)], shade(tone, 0.12))


def _tree(image: Sketch, x: int, y: int, size: int) -> None:
    image.rectangle((x - 2, y, x + 2, y + size * 0.8), COLOURS["brown"])
    for level in range(3):
        top = y - size * 1.7 + level * size * 0.6
        corners = [(x, top), (x - size * 0.8, top + size), (x + size * 0.8, top + size)]
        image.polygon(corners, shade(COLOURS["green"], -0.35 + 0.12 * level))


def _house(image: Sketch, x: int, y: int, rng: np.random.Generator) -> None:
    names = list(COLOURS)
    first, second = rng.choice(len(names), 2, replace=False)
    front, roof = shade(COLOURS[names[first]], 0.5), shade(COLOURS[names[second]], -0.2)
    image.rectangle((x, y, x + 34, y + 26), front, shade(front, -0.4), 1.5)
    image.polygon([(x - 5, y), (x + 17, y - 18), (x + 39, y)], roof, shade(roof, -0.4), 1.5)
    image.rectangle((x + 5, y + 11, x + 14, y + 26), shade(roof, -0.3))
    image.rectangle((x + 20, y + 7, x + 29, y + 16), COLOURS["yellow"], shade(front, -0.4), 1.5)
