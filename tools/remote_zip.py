"""A zip file on a web server, read without downloading it whole."""

from __future__ import annotations

import io
import urllib.request
import zipfile
from http.client import HTTPResponse
from pathlib import Path
from urllib.parse import unquote, urlsplit

TIMEOUT_S = 60
BLOCK_BYTES = 2**20


class RemoteFile(io.RawIOBase):
    """A file behind an address, read by HTTP range requests."""

    def __init__(self, url: str) -> None:
        self._url, self._position = url, 0
        with self._ask("bytes=0-0") as answer:
            self._size = int(answer.headers["Content-Range"].rpartition("/")[2])

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        self._position = start + offset
        return self._position

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        end = min(self._position + len(buffer), self._size)
        if end <= self._position:
            return 0
        with self._ask(f"bytes={self._position}-{end - 1}") as answer:
            part = answer.read()
        buffer[: len(part)] = part
        self._position += len(part)
        return len(part)

    def _ask(self, part: str) -> HTTPResponse:
        answer = urllib.request.urlopen(
            urllib.request.Request(self._url, headers={"Range": part}), timeout=TIMEOUT_S
        )
        if answer.status != 206:
            answer.close()
            raise OSError(f"{self._url}: the server gives whole files only; use an index that serves ranges")
        return answer  # type: ignore[no-any-return]


def open_zip(url: str) -> zipfile.ZipFile:
    """The zip file at a file: or https: address."""
    if url.startswith("file:"):
        return zipfile.ZipFile(path_of(url))
    return zipfile.ZipFile(io.BufferedReader(RemoteFile(url), BLOCK_BYTES))


def path_of(url: str) -> Path:
    """The file at a file: address."""
    return Path(unquote(urlsplit(url).path))
