"""Observations as messages of a conversation, as pixels, and as digests that are equal for equal ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import xxhash
from PIL import Image

from vlrl.protocols import Observation


def parts_of(observation: Observation) -> list[dict[str, Any]]:
    """Message parts: images first, then videos, then the text; no part for what is not there."""
    parts: list[dict[str, Any]] = [{"type": "image", "image": image} for image in observation.images]
    for video in observation.videos:
        parts.append({"type": "video", "video": list(video.frames), "fps": float(video.fps)})
    if observation.text:
        parts.append({"type": "text", "text": observation.text})
    return parts


def message_of(observation: Observation) -> dict[str, Any]:
    """The observation as a message of its role."""
    return {"role": observation.role, "content": parts_of(observation)}


def pixels_of(image: Any) -> npt.NDArray[np.uint8]:
    """[height, width, 3] uint8 of an image as an environment gives it.

    Raises:
        ValueError: saying what it is instead.
    """
    if isinstance(image, Image.Image):
        return np.asarray(image.convert("RGB"))
    if not isinstance(image, np.ndarray):
        raise ValueError(f"an image is a {type(image).__name__}; give a PIL image or a uint8 array")
    if image.ndim != 3 or image.shape[2] != 3 or image.dtype != np.uint8 or image.size == 0:
        raise ValueError(
            f"an image is an array {list(image.shape)} of {image.dtype}; give [height, width, 3] uint8"
        )
    return image


def digest_of(observation: Observation) -> str:
    """A name that equal observations share, and no others but by malice: of pixels, frame rates and the text.

    Not cryptographic: SHA-256 of a screenshot takes longer than drawing one.
    """
    digest = xxhash.xxh3_128()
    for image in observation.images:
        _add(digest, image)
    for video in observation.videos:
        digest.update(f"video {video.fps!r} {len(video.frames)}".encode())
        for frame in video.frames:
            _add(digest, frame)
    digest.update(observation.text.encode(errors="surrogatepass"))
    return digest.hexdigest()


def _add(digest: Any, image: Any) -> None:
    pixels = pixels_of(image)
    digest.update(str(pixels.shape).encode())
    digest.update(np.ascontiguousarray(pixels).ravel())
