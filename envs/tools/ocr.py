"""A tool that reads the text in an image: with Tesseract, or with a function of one's own."""

from __future__ import annotations

import io
import shutil
import subprocess
from collections.abc import Callable
from typing import Annotated

from PIL import Image
from pydantic import Field

from vlrl.coordinates import Canvas, CoordinateFrame
from vlrl.envs.tools.declare import ToolError
from vlrl.envs.tools.images import ImageTool, pick
from vlrl.errors import ConfigError
from vlrl.registry import resolve


class OCR(ImageTool):
    """Reads text."""

    def __init__(
        self,
        frame: CoordinateFrame = "resized_pixels",
        backend: str = "tesseract",
        language: str = "eng",
        time_limit_s: float = 20.0,
    ) -> None:
        """Choose who reads.

        Args:
            frame: as for the other tools of images.
            backend: "tesseract", the program of that name, or ./file.py:function, which is given a PIL image
                and returns the text.
            language: of Tesseract's trained data.
            time_limit_s: for Tesseract, an image.

        Raises:
            ConfigError: if there is no such backend.
        """
        super().__init__(frame)
        self._read = (
            _tesseract(language, time_limit_s) if backend == "tesseract" else resolve("tools", backend)
        )

    def __call__(
        self,
        images: list[Image.Image],
        canvases: list[Canvas],
        box: Annotated[list[float], Field(min_length=4, max_length=4)] | None = None,
        image_number: int = 1,
    ) -> str:
        """Read the text in an image.

        Args:
            box: left, top, right and bottom edge of the part to read; all of it if left out.
            images: images seen so far.
            canvases: their sizes.
            image_number: number of the image, counted from 1 in the order in which they were shown.
        """
        index = pick(image_number, images)
        part = images[index] if box is None else images[index].crop(self._box(box, canvases[index]))
        return str(self._read(part)).strip() or "(no text found)"


def _tesseract(language: str, time_limit_s: float) -> Callable[[Image.Image], str]:
    program = shutil.which("tesseract")
    if program is None:
        raise ConfigError(
            "tool 'ocr': the program tesseract is not installed; install it (Debian: tesseract-ocr), "
            "or give the option backend: ./file.py:function, a function of a PIL image that returns its text"
        )

    def read(image: Image.Image) -> str:
        written = io.BytesIO()
        image.save(written, "PNG")
        try:
            done = subprocess.run(
                [program, "stdin", "stdout", "-l", language],
                input=written.getvalue(),
                capture_output=True,
                timeout=time_limit_s,
                env={"OMP_THREAD_LIMIT": "1", "PATH": "/usr/bin:/bin"},
            )
        except subprocess.TimeoutExpired as error:
            raise ToolError(f"reading took longer than {time_limit_s:g} s; give a smaller box") from error
        if done.returncode != 0:
            raise ConfigError(f"tesseract failed: {done.stderr.decode(errors='replace').strip():.300}")
        return done.stdout.decode(errors="replace")

    return read
