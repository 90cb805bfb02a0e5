"""One document, rendered: for rewards that look at the page that a model wrote.

The document is the only thing there is: every other request, of a frame, a script, an image or another page,
is aborted, so that the page stays what it is. Its scripts run, in a process that ends with the page.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vlrl.envs.gui.web.backend import WebBackend
from vlrl.envs.gui.web.chromium.chrome import Sandbox
from vlrl.envs.gui.web.chromium.gate import BLANK, ORIGIN, Gate, reply
from vlrl.envs.gui.web.chromium.pipe import BrowserFailure
from vlrl.envs.gui.web.look import Look
from vlrl.types import ByteArray

MAX_HTML_BYTES = 1 << 20
MIN_SIDE, MAX_SIDE, MAX_PIXELS = 32, 8192, 1 << 24
MAX_TEXT = 20_000
"""Characters of a page's text; what follows is left out."""

_ADDRESS = "/page.html"
# A page may have no body; and its own world could say whatever it wanted.
_TEXT = f"(document.body?.innerText ?? '').slice(0, {MAX_TEXT})"
_CALM = "<!DOCTYPE html><title></title>"


@dataclass(frozen=True, slots=True)
class Rendered:
    """A page as it is seen.

    Attributes:
        pixels: [height, width, 3] uint8 RGB, the part at the top left that fits.
        text: what of its text is displayed, in or out of sight.
    """

    pixels: ByteArray
    text: str


def render(html: str, size: tuple[int, int], limit_s: float, sandbox: Sandbox = "require") -> Rendered | None:
    """A document at (width, height) in pixels; None if it cannot be shown.

    What takes longer than `limit_s` real seconds to load or to draw, ends its process, or is larger than
    MAX_HTML_BYTES cannot be shown. After a failure a blank page has to succeed, so that a broken browser is
    not taken for a broken page.

    Raises:
        ConfigError: without a browser or its sandbox.
        ValueError: for a size out of MIN_SIDE to MAX_SIDE a side and MAX_PIXELS in all.
        BrowserFailure: if a blank page cannot be shown either.
    """
    if not all(MIN_SIDE <= side <= MAX_SIDE for side in size) or size[0] * size[1] > MAX_PIXELS:
        raise ValueError(
            f"a page of {size[0]}×{size[1]} pixels cannot be rendered: {MIN_SIDE} to {MAX_SIDE} a side, "
            f"at most {MAX_PIXELS} in all"
        )
    content = html.encode("utf-8", "replace")
    if len(content) > MAX_HTML_BYTES:
        return None
    try:
        return _rendered(content, size, limit_s, sandbox)
    except BrowserFailure:
        _rendered(_CALM.encode(), size, limit_s, sandbox)
        return None


class _OneDocument(Gate):
    """The gate of a page that is all there is."""

    def __init__(self, content: bytes) -> None:
        super().__init__(Path("/nonexistent"))
        self._content = content
        self._is_served = False

    def answer(self, request: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
        """The document, once: a page that loads itself again and again would never come to rest."""
        if request["url"] == BLANK and not self._is_served:
            return super().answer(request)
        if request["url"] == ORIGIN + _ADDRESS and not self._is_served:
            self._is_served = True
            return "Fetch.fulfillRequest", reply(self._content, "text/html; charset=utf-8")
        # An aborted navigation leaves the page where it is; a failed one would show the browser's own page.
        return "Fetch.failRequest", {"errorReason": "Aborted"}


def _rendered(content: bytes, size: tuple[int, int], limit_s: float, sandbox: Sandbox) -> Rendered:
    backend = WebBackend(_OneDocument(content), Look(size, limit_s=limit_s, is_alone=True), sandbox)
    try:
        page = backend.open(_ADDRESS, 0)
        return Rendered(page.image()[0], str(page.evaluate(_TEXT, isolated=True)))
    finally:
        backend.close()
