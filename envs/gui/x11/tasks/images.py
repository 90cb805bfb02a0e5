"""Work with images: the image viewer (gpicview) and the file manager."""

from __future__ import annotations

import io

import numpy as np
from PIL import Image, ImageDraw, ImageFont, UnidentifiedImageError

from vlrl.envs.gui.actions import Answer, OpenApp, TypeText
from vlrl.envs.gui.x11.sandbox.home import Tree
from vlrl.envs.gui.x11.task import DesktopTask, Setup
from vlrl.envs.gui.x11.tasks.words import NOUNS, draw, keys
from vlrl.types import ByteArray

_SIDE = 96
_MOST_PIXELS = 1 << 16


def _read_number(rng: np.random.Generator) -> Setup:
    names = draw(rng, NOUNS, 5)
    numbers = [str(n) for n in rng.choice(np.arange(10_000, 99_999), len(names), replace=False)]
    files = {f"{name}.png": _sign(number) for name, number in zip(names, numbers, strict=True)}
    return Setup(
        goal=f"Which number does the picture {names[0]}.png show? Answer with it.",
        oracle=[
            *(OpenApp("pcmanfm"), TypeText(f"{names[0]}.png"), *keys("escape", "enter"), Answer(numbers[0])),
        ],
        files=files,
        answer=numbers[0],
    )


def _turn(rng: np.random.Generator) -> Setup:
    name = f"{draw(rng, NOUNS, 1)[0]}.png"
    pixels = np.kron(
        rng.integers(0, 256, (6, 6, 3), np.uint8), np.ones((_SIDE // 6, _SIDE // 6, 1), np.uint8)
    )
    goal_pixels = np.rot90(pixels, -1)

    def is_turned(tree: Tree) -> bool:
        found = _decoded(tree.get(name, b""))
        return found is not None and np.array_equal(found, goal_pixels)

    return Setup(
        goal=f"Turn the picture {name} by 90 degrees clockwise and save it under its name.",
        oracle=[
            *(OpenApp("pcmanfm"), TypeText(name), *keys("escape", "enter"), *keys("r", "s", "alt+y")),
        ],
        files={name: _png(pixels)},
        milestones={"it is turned": is_turned},
        changed=[name],
    )


def _sign(number: str) -> bytes:
    image = Image.new("RGB", (320, 160), (250, 246, 228))
    font = ImageFont.load_default(72)
    ImageDraw.Draw(image).text((160, 80), number, (20, 30, 90), font, anchor="mm")
    return _png(np.asarray(image))


def _png(pixels: ByteArray) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG")
    return buffer.getvalue()


def _decoded(data: bytes) -> ByteArray | None:
    """Pixels of a small image; None for anything else, since the agent may have written it."""
    try:
        with Image.open(io.BytesIO(data), formats=["PNG"]) as image:
            if image.width * image.height > _MOST_PIXELS:
                return None
            return np.asarray(image.convert("RGB"))
    except (UnidentifiedImageError, OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        return None


TASKS = [
    DesktopTask("picture_read_number", ("pcmanfm", "gpicview"), _read_number),
    DesktopTask("picture_turn", ("pcmanfm", "gpicview"), _turn),
]
