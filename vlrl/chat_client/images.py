"""Pixels as data URLs."""

from __future__ import annotations

import base64
import io
import math

import numpy as np
from PIL import Image

from vlrl.config.chat import ChatEndpoint
from vlrl.types import ByteArray


def data_url(pixels: ByteArray, endpoint: ChatEndpoint) -> str:
    """[height, width, 3] uint8 as data:image/…;base64, at most max_image_pixels."""
    image = Image.fromarray(np.ascontiguousarray(pixels))
    share = endpoint.max_image_pixels / (image.width * image.height)
    if share < 1:
        side = math.sqrt(share)
        size = max(1, int(image.width * side)), max(1, int(image.height * side))
        image = image.resize(size, Image.Resampling.LANCZOS)
    file = io.BytesIO()
    if endpoint.image_format == "png":
        image.save(file, "PNG")
    else:
        image.save(file, "JPEG", quality=95, subsampling=0)
    return f"data:image/{endpoint.image_format};base64,{base64.b64encode(file.getvalue()).decode()}"
