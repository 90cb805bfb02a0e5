"""A run's pictures, put into a page."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

PIXELATED_BELOW = 256
"""Pictures with a shorter side than this, in pixels, are enlarged, and their pixels kept visible."""

THUMBNAIL_SIDE = 200
"""Longest side of a picture in a film strip, in pixels."""

VIDEO_FRAMES = 4
"""Frames of a video in a film strip at most, evenly spread."""


@dataclass(frozen=True, slots=True)
class Picture:
    """An inlined picture; `uri` is empty if the file is missing. `caption` is the time of a frame."""

    uri: str
    width: int
    height: int
    pixelated: bool
    caption: str = ""


def inline_picture(run_dir: Path, media: Mapping[str, Any]) -> Picture:
    """A PNG of the run as a data URI. A path that leaves the run's folder is not followed."""
    width, height = int(media.get("width", 0)), int(media.get("height", 0))
    path = _file_of(run_dir, media)
    uri = data_uri(path.read_bytes(), "png") if path else ""
    return Picture(uri, width, height, min(width, height) < PIXELATED_BELOW)


def inline_thumbnails(run_dir: Path, media: Mapping[str, Any]) -> list[Picture]:
    """A medium small enough for a film strip: a picture, or a few frames of a video."""
    width, height = int(media.get("width", 0)), int(media.get("height", 0))
    path = _file_of(run_dir, media)
    if path is None:
        return [Picture("", width, height, False)]
    with Image.open(path) as opened:
        frames = np.split(np.asarray(opened.convert("RGB")), int(media.get("num_frames", 1)), axis=1)
    times = media.get("timestamps_s") or []
    chosen = sorted({round(i) for i in np.linspace(0, len(frames) - 1, min(VIDEO_FRAMES, len(frames)))})
    return [_thumbnail(frames[i], f"{times[i]:.1f} s" if i < len(times) else "") for i in chosen]


def data_uri(data: bytes, kind: str) -> str:
    """An encoded picture as text; `kind` is png or jpeg."""
    return f"data:image/{kind};base64,{base64.b64encode(data).decode('ascii')}"


def _thumbnail(frame: np.ndarray[Any, np.dtype[np.uint8]], caption: str) -> Picture:
    """PNG or JPEG, whichever is smaller: it is only for looking."""
    picture = Image.fromarray(frame)
    width, height = picture.size
    picture.thumbnail((THUMBNAIL_SIDE, THUMBNAIL_SIDE))
    png, jpeg = io.BytesIO(), io.BytesIO()
    picture.save(png, "PNG", optimize=True)
    picture.save(jpeg, "JPEG", quality=88)
    smaller = (png, "png") if len(png.getvalue()) <= len(jpeg.getvalue()) else (jpeg, "jpeg")
    uri = data_uri(smaller[0].getvalue(), smaller[1])
    return Picture(uri, width, height, max(width, height) < THUMBNAIL_SIDE, caption)


def _file_of(run_dir: Path, media: Mapping[str, Any]) -> Path | None:
    path = (run_dir / str(media.get("path", ""))).resolve()
    inside = path.is_relative_to(run_dir.resolve()) and path.suffix == ".png"
    return path if inside and path.is_file() else None
