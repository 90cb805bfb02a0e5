"""A page's frames: drawn when they are asked for, and read only if they show something new."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping
from typing import Any

import numpy as np
from PIL import Image

from vlrl.envs.gui.web.chromium.browser import Browser
from vlrl.envs.gui.web.chromium.pipe import BrowserFailure, Deadline
from vlrl.types import ByteArray

_SHARE = 0.2
"""Of the time for an action, after which a frame is given up: all other pages wait for it."""
_PNG = {"format": "png", "optimizeForSpeed": True}


class Drawing:
    """What one page looks like."""

    def __init__(self, browser: Browser, session: str, size: tuple[int, int]) -> None:
        """Take the page of a session, whose images have `size` (width, height) pixels."""
        self._browser, self._session, self._size = browser, session, size
        self._pixels: ByteArray | None = None
        self._is_changed = True  # since those pixels were read

    def pixels(self, deadline: Deadline) -> ByteArray:
        """[height, width, 3] uint8. Reading takes longer than the rest of a step; most clicks change nothing.

        Raises:
            BrowserFailure: if the browser died, or draws in another size.
        """
        if self._pixels is not None:  # else the first frame is read anyway
            self.frame(deadline)
        if self._pixels is None or self._is_changed:
            self._pixels = self._read(deadline)
        return self._pixels.copy()

    def frame(self, deadline: Deadline) -> None:
        """Draw."""
        self._draw({}, deadline)

    def _read(self, deadline: Deadline) -> ByteArray:
        encoded = None
        while encoded is None:  # of a page that has just come, the first frame may show nothing
            encoded = self._draw({"screenshot": _PNG}, deadline).get("screenshotData")
        self._is_changed = False
        with Image.open(io.BytesIO(base64.b64decode(encoded))) as image:
            if image.size != self._size:
                raise BrowserFailure(f"the browser drew an image of {image.size} pixels, not {self._size}")
            return np.asarray(image.convert("RGB"))

    def _draw(self, what: Mapping[str, Any], deadline: Deadline) -> dict[str, Any]:
        command = "HeadlessExperimental.beginFrame"
        with self._browser.drawing:  # while one page draws, another's frame would end the browser
            sent = self._browser.pipe.send(command, what, self._session)
            drawn = deadline.part(_SHARE).wait(sent, "a frame")
        self._is_changed |= drawn["hasDamage"]
        return drawn
