"""An observation judged, and named by what it shows."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from vlrl.protocols import Observation


def pixels_of(picture: Any) -> npt.NDArray[np.uint8]:
    """[height, width, 3] uint8 of a picture as an environment gives it.

    Raises:
        ValueError: saying what it is instead.
    """
    if isinstance(picture, Image.Image):
        return np.asarray(picture.convert("RGB"))
    if not isinstance(picture, np.ndarray):
        raise ValueError(f"a picture is a {type(picture).__name__}; give a PIL image or a uint8 array")
    if picture.ndim != 3 or picture.shape[2] != 3 or picture.dtype != np.uint8 or picture.size == 0:
        raise ValueError(
            f"a picture is an array {list(picture.shape)} of {picture.dtype}; give [height, width, 3] uint8"
        )
    return picture


def problems_of(observation: Any) -> list[str]:
    """What is wrong with what an environment showed; nothing, if it can be shown to a model."""
    if not isinstance(observation, Observation):
        return [f"it is a {type(observation).__name__}; return vlrl.protocols.Observation(text, images)"]
    found = []
    text: Any = observation.text
    role: Any = observation.role
    if not isinstance(text, str):
        found.append(f"text is a {type(text).__name__}; give a str")
    if role not in ("user", "tool"):
        found.append(f"role is {role!r}; give user or tool")
    pictures = list(observation.images)
    for video in observation.videos:
        if not video.frames or not video.fps > 0:
            found.append(f"a video has {len(video.frames)} frames at {video.fps} a second")
        pictures += video.frames
    for picture in pictures:
        try:
            pixels_of(picture)
        except (ValueError, OSError) as error:  # OSError: a PIL image that is opened but cannot be read
            found.append(str(error))
    if not pictures and not text:
        found.append("it shows nothing: neither text nor a picture")
    return found


def digest_of(observation: Observation) -> str:
    """A name that equal observations share: of all pixels, frame rates and the text."""
    digest = hashlib.sha256()
    for picture in observation.images:
        _add(digest, picture)
    for video in observation.videos:
        digest.update(f"video {video.fps!r} {len(video.frames)}".encode())
        for frame in video.frames:
            _add(digest, frame)
    digest.update(observation.text.encode(errors="surrogatepass"))
    return digest.hexdigest()


def _add(digest: Any, picture: Any) -> None:
    pixels = pixels_of(picture)
    digest.update(str(pixels.shape).encode())
    digest.update(np.ascontiguousarray(pixels).tobytes())
