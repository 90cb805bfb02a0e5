"""Images of any size without their pixels, and completions in form."""

from __future__ import annotations

import numpy as np

from vlrl.types import Media


def seen(
    original: tuple[int, int] = (480, 640),
    size: tuple[int, int] = (476, 644),
    frame: str = "original_pixels",
) -> Media:
    """An image of (height, width) pixels, shown to the model at another size."""
    frames = np.broadcast_to(np.zeros((1, 1, 1, 3), np.uint8), (1, *size, 3))
    return Media("image", "", frames, original, (1, 1, 1), 1, coordinate_frame=frame)


def think(answer: str) -> str:
    """A completion in the strict form."""
    return f"<think>I see it</think><answer>{answer}</answer>"
