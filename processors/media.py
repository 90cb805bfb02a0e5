"""Decode and resize a medium once, into the record every reader shares."""

from __future__ import annotations

import hashlib
import io
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError
from qwen_vl_utils.vision_process import smart_resize

from vlrl.errors import DataError
from vlrl.types import ByteArray, Media


def resolve_image(
    source: Any, *, patch_size: int, merge_size: int, min_pixels: int, max_pixels: int, where: str
) -> Media:
    """Make the Media record of a picture.

    Args:
        source: a path, encoded bytes, a PIL image, or a [height, width, 3] uint8 array.
        patch_size: side of the vision tower's patch, in pixels.
        merge_size: patches merged per side into one token.
        min_pixels: smaller pictures are enlarged to at least this many pixels.
        max_pixels: larger pictures are shrunk to at most this many.
        where: the sample's id, for errors.

    Raises:
        DataError: for a missing file, a broken picture, an aspect ratio beyond 200:1, or limits too close.
    """
    picture = open_image(source, where)
    width, height = picture.size

    def fit(height: int, width: int) -> tuple[int, int]:
        new_height, new_width = smart_resize(
            height, width, factor=patch_size * merge_size, min_pixels=min_pixels, max_pixels=max_pixels
        )
        return int(new_height), int(new_width)

    try:
        new_height, new_width = fit(height, width)
    except (ValueError, ZeroDivisionError) as error:
        raise DataError(
            f"{where}: a picture of {width}x{height} pixels cannot be resized: {error}"
        ) from error
    # The engine resizes what it is given once more, and must come to the same size.
    if not new_height * new_width or fit(new_height, new_width) != (new_height, new_width):
        raise DataError(
            f"{where}: no size for a picture of {width}x{height} pixels lies between processor.min_pixels="
            f"{min_pixels} and processor.max_pixels={max_pixels}; set them further apart"
        )
    if (new_width, new_height) != (width, height):
        picture = picture.resize((new_width, new_height), Image.Resampling.BICUBIC)
    frames = np.asarray(picture, dtype=np.uint8)[None]
    grid = (1, new_height // patch_size, new_width // patch_size)
    return Media(
        kind="image",
        sha256=_content_hash(frames),
        frames=frames,
        original_size=(height, width),
        grid_thw=grid,
        num_tokens=grid[0] * grid[1] * grid[2] // merge_size**2,
    )


def open_image(source: Any, where: str) -> Image.Image:
    """Decode any accepted source to upright RGB.

    Raises:
        DataError: naming the sample and the file.
    """
    name = f"picture {source}" if isinstance(source, str | Path) else f"picture ({type(source).__name__})"
    try:
        if isinstance(source, Image.Image):
            picture = source
        elif isinstance(source, np.ndarray):
            picture = Image.fromarray(source)
        elif isinstance(source, bytes):
            picture = Image.open(io.BytesIO(source))
        else:
            picture = Image.open(source)
        return _on_white(ImageOps.exif_transpose(picture)).convert("RGB")
    except FileNotFoundError as error:
        raise DataError(f"{where}: {name} does not exist; check the path and image_root") from error
    except UnidentifiedImageError as error:
        raise DataError(f"{where}: {name} is not an image Pillow can read") from error
    except (OSError, SyntaxError, Image.DecompressionBombError) as error:
        raise DataError(f"{where}: {name} is broken: {error}; replace the file or drop the row") from error
    except (TypeError, ValueError, AttributeError) as error:
        raise DataError(
            f"{where}: {name} is not a picture ({error}); give a path, encoded bytes, a PIL image, or a "
            "[height, width, 3] uint8 array"
        ) from error


def _on_white(picture: Image.Image) -> Image.Image:
    """Fill what is transparent, as Qwen's own preprocessing does; dropping alpha would leave it black."""
    if not picture.has_transparency_data:
        return picture
    layered = picture.convert("RGBA")
    white = Image.new("RGBA", layered.size, "white")
    return Image.alpha_composite(white, layered)


def _content_hash(frames: ByteArray) -> str:
    digest = hashlib.sha256(str(frames.shape).encode())
    digest.update(np.ascontiguousarray(frames).data)
    return digest.hexdigest()
