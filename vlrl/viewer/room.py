"""A page's budget of bytes, divided among its images and tokens, so that the file can be sent."""

from __future__ import annotations

import io

import numpy as np
import numpy.typing as npt
from PIL import Image

from vlrl.viewer.images import LONGEST, PIXELATED_BELOW, data_uri

IMAGE_BYTES = 11_000_000
"""Bytes of all images of a page together, as they stand in it."""
TOKEN_BYTES = 4_000_000
"""Bytes of all tokens."""
SPAN_BYTES = 60
"""Bytes of a token's tags."""

MAX_IMAGE_BYTES = 45_000
"""Bytes of one image, however few there are: a screen of 640×480 pixels full of text."""
SIDES = (LONGEST, 640, 480, 360, 270, 200, 150)
"""Longest sides in pixels that an image is made smaller to, one after the other."""


class SizeBudget:
    """The bytes that are left for a page. Images that turn out small leave more for those after them."""

    def __init__(self, num_images: int, image_bytes: int = IMAGE_BYTES) -> None:
        """Share the page out among so many images, those of a missing file too."""
        self._num_images, self._bytes, self._tokens = max(1, num_images), image_bytes, TOKEN_BYTES
        self._start = 0

    def image(self, frame: npt.NDArray[np.uint8]) -> str:
        """An image as a data URI, as small as it has to be.

        Args:
            frame: [height, width, 3] uint8.
        """
        share = min(MAX_IMAGE_BYTES, self._bytes / max(1, self._num_images))
        index = self._start  # what the image before it needed: neighbours are of a kind
        while len(uri := _encoded(frame, SIDES[index])) > share and index + 1 < len(SIDES):
            index += 1
        self._start = max(0, index - 1) if 2 * len(uri) < share else index
        self._num_images -= 1
        self._bytes -= len(uri)
        return uri

    def has_tokens(self, num_chars: int, num_spans: int) -> bool:
        """Whether so many can be shown one by one; if so, they are counted."""
        needed = num_chars + SPAN_BYTES * num_spans
        if needed > self._tokens:
            return False
        self._tokens -= needed
        return True


def _encoded(frame: npt.NDArray[np.uint8], side: int) -> str:
    """WebP; PNG of a small image, whose every pixel counts, while there is room."""
    image, out = Image.fromarray(frame), io.BytesIO()
    if min(frame.shape[:2]) < PIXELATED_BELOW and side == LONGEST:
        image.save(out, "PNG")
        return data_uri(out.getvalue(), "png")
    image.thumbnail((side, side), Image.Resampling.LANCZOS)
    image.save(out, "WEBP", quality=80, method=2)
    return data_uri(out.getvalue(), "webp")
