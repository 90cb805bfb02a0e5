"""Contents of chat messages, as other libraries write them, to observations."""

from __future__ import annotations

import base64
import binascii
import io
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from PIL import Image

from vlrl.protocols import Observation

_SIGNATURES = ("iVBORw0KGgo", "/9j/", "UklGR", "R0lGOD")
"""How base64 of PNG, JPEG, WebP and GIF begins."""
_DATA_URL = "data:image/"


def observation_of(
    contents: Iterable[Any], role: Literal["user", "tool"] = "user", separator: str = "\n"
) -> Observation:
    """One observation of several messages' contents: the texts joined, the images in their order.

    Args:
        contents: each a text, or a list of parts: {"type": "text", "text": str},
            {"type": "image", "image": PIL image, [h, w, 3] uint8 array or base64}, or OpenAI's
            {"type": "image_url", "image_url": {"url": "data:image/…;base64,…"}}.
        role: of the observation.
        separator: between texts.

    Raises:
        ValueError: for a part of another type, and for an image given by address: nothing is fetched.
    """
    texts: list[str] = []
    images: list[Any] = []
    for content in contents:
        for part in [content] if isinstance(content, str) else content or ():
            if isinstance(part, str):
                texts.append(part)
            elif isinstance(part, Mapping) and part.get("type") == "text":
                texts.append(str(part["text"]))
            elif isinstance(part, Mapping) and part.get("type") in ("image", "image_url"):
                images.append(_image_of_part(part))
            else:
                raise ValueError(f"{part!r:.80} is no text and no image part of a message")
    return Observation(text=separator.join(text for text in texts if text), images=tuple(images), role=role)


def sendable(text: str) -> str:
    """The text with halves of surrogate pairs, which UTF-8 cannot write, as question marks."""
    return text.encode(errors="replace").decode()


def image_of(value: Any) -> Any | None:
    """An image if the value is one, else None: never raises for text that merely is not an image.

    Args:
        value: a PIL image, a [h, w, 3] uint8 array, the same as nested lists of whole numbers in 0…255, a
            data URL of an image, or base64 of a PNG, JPEG, WebP or GIF.

    Raises:
        ValueError: for what begins as an image and cannot be read as one.
    """
    if isinstance(value, Image.Image):
        return value
    if isinstance(value, str):
        return _decoded(value)
    if isinstance(value, np.ndarray):
        return value if value.dtype == np.uint8 and value.ndim == 3 and value.shape[2] == 3 else None
    return _of_lists(value)


def _image_of_part(part: Mapping[str, Any]) -> Any:
    value = part.get("image")
    if part["type"] == "image_url":
        source = part["image_url"]
        value = source.get("url") if isinstance(source, Mapping) else source
    image = image_of(value)
    if image is None:
        raise ValueError(
            f"the image {value!r:.60} is given neither by its pixels nor as base64; nothing is fetched"
        )
    return image


def _decoded(text: str) -> Image.Image | None:
    if text.startswith(_DATA_URL):
        _, comma, text = text.partition(";base64,")
        if not comma:
            raise ValueError("a data URL of an image is not in base64")
    elif not text.startswith(_SIGNATURES):
        return None
    try:
        with Image.open(io.BytesIO(base64.b64decode(text, validate=True))) as image:
            return image.convert("RGB")
    except (binascii.Error, OSError, SyntaxError, Image.DecompressionBombError) as error:
        raise ValueError(f"an image in base64 ({len(text)} characters) cannot be read: {error}") from error


def _of_lists(value: Any) -> Any | None:
    """[h, w, 3] nested lists to an array; whatever else they are is left alone."""
    row = value[0] if isinstance(value, Sequence) and value else None
    pixel = row[0] if isinstance(row, Sequence) and not isinstance(row, str) and row else None
    if not isinstance(pixel, Sequence) or isinstance(pixel, str) or len(pixel) != 3:
        return None
    try:
        array = np.asarray(value)
    except ValueError:  # ragged
        return None
    whole = array.ndim == 3 and array.dtype.kind in "iu" and array.min() >= 0 and array.max() <= 255
    return array.astype(np.uint8) if whole else None
