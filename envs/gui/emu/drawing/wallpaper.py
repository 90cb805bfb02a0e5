"""What lies behind everything.

A wallpaper is a strip of pixels of which every row shows a piece that begins a little further on: rows are
then copied as they are, and a new wallpaper costs its strip, not a screen.
"""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import as_strided

from vlrl.envs.gui.emu.drawing.theme import Colour
from vlrl.types import ByteArray

STEPS = {"slope": 1, "rays": 1, "bars": 0, "glow": 2, "plain": 0}
"""Kind → pixels by which a row begins later in the strip than the one above."""
WALLPAPERS = tuple(STEPS)


def wallpaper(width: int, height: int, kind: str, first: Colour, second: Colour) -> ByteArray:
    """A painter: two colours in a pattern."""
    step = STEPS[kind]
    length = width + step * height
    at = np.arange(length)
    match kind:
        case "slope":
            share = at * 255 // length
        case "rays":
            share = at * 190 // length + at // max(1, height // 9) % 2 * 26
        case "bars":
            share = at // max(1, width // 12) * 255 // 12
        case "glow":
            share = 255 - abs(at * 510 // length - 255)
        case _:
            share = np.zeros(length, np.int64)
    low, high, part = np.array(first), np.array(second), np.minimum(share, 255)[:, None]
    strip = ((low * (255 - part) + high * part + 127) // 255).astype(np.uint8)
    return as_strided(strip, (height, width, 3), (3 * step, 3, 1), writeable=False)
