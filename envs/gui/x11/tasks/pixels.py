"""Pictures of tasks: made, and compared with what the agent saved."""

from __future__ import annotations

import io
from typing import Literal

import numpy as np
from PIL import Image, ImageDraw, ImageFont, UnidentifiedImageError

from vlrl.envs.gui.x11.sandbox.home import Tree
from vlrl.envs.gui.x11.task import Predicate
from vlrl.types import ByteArray

SIDE = 16
COLOURS = {"red": (200, 30, 40), "green": (40, 160, 60), "blue": (40, 70, 200), "yellow": (240, 210, 40)}
_MOST_PIXELS = 1 << 17
_NEAR = 12.0
"""Mean difference of a colour's part, 0 to 255, that JPEG and smooth scaling may make: a tenth of that of two
pictures of random colours."""


def checks(rng: np.random.Generator, rows: int, columns: int) -> ByteArray:
    """Squares of random colours, [16·rows, 16·columns, 3]."""
    return np.kron(rng.integers(0, 256, (rows, columns, 3), np.uint8), np.ones((SIDE, SIDE, 1), np.uint8))


def sign(number: str) -> bytes:
    """A picture of a number."""
    image = Image.new("RGB", (320, 160), (250, 246, 228))
    font = ImageFont.load_default(72)
    ImageDraw.Draw(image).text((160, 80), number, (20, 30, 90), font, anchor="mm")
    return png(np.asarray(image))


def patch(rng: np.random.Generator, colour: str) -> bytes:
    """A picture of one of COLOURS, a little lighter or darker."""
    shade = np.clip(np.array(COLOURS[colour]) + rng.integers(-25, 26), 0, 255).astype(np.uint8)
    return png(np.broadcast_to(shade, (96, 128, 3)))


def png(pixels: ByteArray) -> bytes:
    """The file of a picture."""
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG")
    return buffer.getvalue()


def shows(
    path: str, pixels: ByteArray, kind: Literal["PNG", "JPEG"] = "PNG", blocks: int | None = None
) -> Predicate:
    """A file is this picture.

    Args:
        path: of the file.
        pixels: [height, width, 3].
        kind: its format; a JPEG need be near only.
        blocks: the side of squares that are compared by their middles: their edges may be smooth.
    """

    def check(tree: Tree) -> bool:
        found = _decoded(tree.get(path, b""), kind)
        if found is None or found.shape != pixels.shape:
            return False
        if blocks:
            found, wanted = (image[blocks // 2 :: blocks, blocks // 2 :: blocks] for image in (found, pixels))
        else:
            wanted = pixels
        exact = kind == "PNG" and not blocks
        return bool(np.abs(found.astype(int) - wanted).mean() <= (0 if exact else _NEAR))

    return check


def _decoded(data: bytes, kind: str) -> ByteArray | None:
    """Pixels of a small picture; None for anything else, since the agent may have written it."""
    try:
        with Image.open(io.BytesIO(data), formats=[kind]) as image:
            if image.width * image.height > _MOST_PIXELS:
                return None
            return np.asarray(image.convert("RGB"))
    except (UnidentifiedImageError, OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        return None
