"""Pixels as data URLs, and sounds."""

from __future__ import annotations

import base64
import io
import math
from typing import Any

import numpy as np
from PIL import Image

from vlrl.config.chat import ChatEndpoint
from vlrl.tracking.rollouts.sound import wav_of
from vlrl.types import ByteArray, Media


def sound_part(audio: Media) -> dict[str, Any]:
    """An audio as a part of a message in OpenAI's form."""
    data = base64.b64encode(wav_of(audio)).decode()
    return {"type": "input_audio", "input_audio": {"data": data, "format": "wav"}}


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
