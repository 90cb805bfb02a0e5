"""Images as they come over a network: decoded whole, or refused."""

from __future__ import annotations

import io
from typing import Any

import numpy as np

from vlrl.environment.host.failure import EnvFailure
from vlrl.types import ByteArray

MAX_PIXELS = 64_000_000
"""Pixels of one image at most; a header that promises more is not believed."""


def image_of(data: bytes, where: str) -> Any:
    """A PNG or JPEG as a PIL image, read to its end.

    Args:
        data: the file's bytes.
        where: names the server and the call in an error.

    Raises:
        EnvFailure: if it is not an image, one that is cut off, or too large.
    """
    from PIL import Image

    try:
        image = Image.open(io.BytesIO(data), formats=("PNG", "JPEG"))
        if image.width * image.height > MAX_PIXELS:
            raise EnvFailure("raised", f"{where}: an image of {image.width}×{image.height} pixels")
        image.load()
    except (
        OSError,
        SyntaxError,
        ValueError,
        Image.DecompressionBombError,
    ) as error:  # SyntaxError: of PNG chunks
        raise EnvFailure(
            "raised", f"{where}: {len(data)} bytes that are not a whole image: {error}"
        ) from error
    return image


def pixels_of(data: bytes, where: str) -> ByteArray:
    """A PNG or JPEG as [height, width, 3] uint8 RGB. Raises as `image_of` does."""
    return np.array(image_of(data, where).convert("RGB"))
