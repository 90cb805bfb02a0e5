"""Images of a run for the page: the file as the model saw it, and a thumbnail of its first frame."""

from __future__ import annotations

import io
import re
import warnings
from pathlib import Path

from PIL import Image

SHA256 = re.compile(r"[0-9a-f]{64}")
THUMB = (128, 96)
"""Most (width, height) of a thumbnail, in pixels."""
MAX_PIXELS = 64_000_000
"""Of an image that a thumbnail is made of: a file that claims more is not decoded."""


def media_file(run_dir: Path, sha256: str) -> Path | None:
    """The PNG of a medium; None if the name is not a hash, or the file is not in the run's folder."""
    if not SHA256.fullmatch(sha256):
        return None
    folder = (run_dir / "media").resolve()
    file = (folder / f"{sha256}.png").resolve()
    return file if file.parent == folder and file.is_file() else None


def thumbnail(file: Path, frames: int = 1) -> bytes | None:
    """A small WebP of the first frame; None if the file is not an image that can be read.

    Args:
        file: the PNG, with a video's frames side by side.
        frames: how many.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            with Image.open(file, formats=["PNG"]) as image:
                if image.width * image.height > MAX_PIXELS:
                    return None
                first = image.crop((0, 0, max(1, image.width // max(1, frames)), image.height)).convert("RGB")
        first.thumbnail(THUMB)
        out = io.BytesIO()
        first.save(out, "WEBP", quality=80, method=0)
    except (
        OSError,
        ValueError,
        SyntaxError,
        Image.DecompressionBombError,
    ):  # PIL raises them for damaged files
        return None
    return out.getvalue()
