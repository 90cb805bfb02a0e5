"""What a page may ask for: the files of its task's folder, served from here; nothing else ever leaves.

Pages live at an address that no name server knows. Every request of a page stops at the gate, which reads the
file or refuses; links that lead out of the folder, and files that begin with a dot or are kept back, are not
there.
"""

from __future__ import annotations

import base64
import mimetypes
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

ORIGIN = "https://task.invalid"
"""RFC 2606 promises that the name leads nowhere."""
BLANK = f"{ORIGIN}/.blank"
"""An empty page of the same origin: it keeps the process of an environment's pages alive between episodes."""

_TYPES = {".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css"}


class Gate:
    """The files of one folder, by the addresses that pages have for them."""

    def __init__(self, folder: Path, is_kept_back: Callable[[Path], bool] = lambda path: False) -> None:
        """Open a folder.

        Args:
            folder: whose files pages may load.
            is_kept_back: true of files in it that pages may not.
        """
        self._folder, self._is_kept_back = folder.resolve(), is_kept_back
        self._known: dict[str, dict[str, Any]] = {}

    def answer(self, request: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
        """The command of the Fetch domain, and its parameters, that ends a request."""
        url = str(request["url"])
        if url == BLANK:
            return "Fetch.fulfillRequest", reply(b"<!DOCTYPE html><title></title>", "text/html")
        if not url.startswith(f"{ORIGIN}/") or request.get("method") not in ("GET", "HEAD"):
            return "Fetch.failRequest", {"errorReason": "BlockedByClient"}
        if url not in self._known:
            path = self._find(unquote(urlsplit(url).path))
            if path is None:
                return "Fetch.fulfillRequest", reply(b"there is no such file", "text/plain", 404)
            kind = _TYPES.get(path.suffix) or mimetypes.guess_type(path.name)[0] or "application/octet-stream"
            self._known[url] = reply(path.read_bytes(), kind)
        return "Fetch.fulfillRequest", self._known[url]

    def _find(self, address: str) -> Path | None:
        parts = address.split("/")[1:]
        if "\0" in address or any(part.startswith(".") for part in parts):
            return None
        path = self._folder.joinpath(*parts).resolve()
        inside = path.is_relative_to(self._folder) and path.is_file()
        return path if inside and not self._is_kept_back(path) else None


def reply(content: bytes, kind: str, code: int = 200) -> dict[str, Any]:
    """Parameters of Fetch.fulfillRequest that answer with a content of a MIME type."""
    headers = [{"name": "Content-Type", "value": kind}, {"name": "Cache-Control", "value": "no-store"}]
    return {"responseCode": code, "responseHeaders": headers, "body": base64.b64encode(content).decode()}
