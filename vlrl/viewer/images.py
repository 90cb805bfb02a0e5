"""A run's images, put into a page."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

PIXELATED_BELOW = 256
"""Images with a shorter side than this, in pixels, are enlarged, and their pixels kept visible."""

LONGEST = 960
"""Pixels of an image's longer side that a page makes use of."""

VIDEO_FRAMES = 4
"""Frames of a video in a film strip at most, evenly spread."""

Encode = Callable[[npt.NDArray[np.uint8]], str]
"""[height, width, 3] → a data URI; see `vlrl.viewer.room.SizeBudget.image`."""


@dataclass(frozen=True, slots=True)
class InlineImage:
    """An inlined image.

    Attributes:
        uri: empty if the file is missing.
        width, height: as the model saw it.
        pixelated: it is small, and shown larger than it is.
        caption: the time of a video's frame.
        original: (width, height) as the environment gave it; places in an action's info are in these pixels.
    """

    uri: str
    width: int
    height: int
    pixelated: bool
    caption: str = ""
    original: tuple[int, int] = (0, 0)


def inline_images(run_dir: Path, media: Mapping[str, Any], encode: Encode) -> list[InlineImage]:
    """A medium of a run as one image, or as a few frames of a video.

    A path that leaves the run's folder is not followed.

    Args:
        run_dir: folder that paths are relative to.
        media: as a record mentions it.
        encode: makes the data URI.
    """
    width, height = int(media.get("width", 0)), int(media.get("height", 0))
    path = _file_of(run_dir, media)
    if path is None:
        return [InlineImage("", width, height, False)]
    with Image.open(path) as opened:
        frames = np.split(np.asarray(opened.convert("RGB")), int(media.get("num_frames", 1)), axis=1)
    times = media.get("timestamps_s") or []
    original = tuple(media.get("original_size") or frames[0].shape[:2])
    chosen = sorted({round(i) for i in np.linspace(0, len(frames) - 1, min(VIDEO_FRAMES, len(frames)))})
    return [
        InlineImage(
            uri=encode(frames[i]),
            width=frames[i].shape[1],
            height=frames[i].shape[0],
            pixelated=min(frames[i].shape[:2]) < PIXELATED_BELOW,
            caption=f"{times[i]:.1f} s" if i < len(times) else "",
            original=(int(original[1]), int(original[0])),
        )
        for i in chosen
    ]


def data_uri(data: bytes, kind: str) -> str:
    """An encoded image as text; `kind` is png, jpeg or webp."""
    return f"data:image/{kind};base64,{base64.b64encode(data).decode('ascii')}"


def _file_of(run_dir: Path, media: Mapping[str, Any]) -> Path | None:
    path = (run_dir / str(media.get("path", ""))).resolve()
    inside = path.is_relative_to(run_dir.resolve()) and path.suffix == ".png"
    return path if inside and path.is_file() else None
