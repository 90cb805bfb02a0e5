"""A hub of one dataset on this machine: what huggingface_hub asks of an endpoint, and faults on demand."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import unquote, urlsplit

COMMIT = "0123456789abcdef0123456789abcdef01234567"
LARGE = 1000
"""Files from this size on are large ones, which have a SHA-256."""


@dataclass
class Hub:
    """A server's dataset, and what was asked of it.

    Attributes:
        repo: its name.
        files: name → content.
        endpoint: for HF_ENDPOINT.
        fetched: (file, first byte) of each download.
        cut_after: bytes after which a download is cut off, once; None cuts none.
        tampered: files whose content is another than the one that is named.
    """

    repo: str
    files: Mapping[str, bytes]
    endpoint: str = ""
    fetched: list[tuple[str, int]] = field(default_factory=list)
    cut_after: int | None = None
    tampered: set[str] = field(default_factory=set)

    def info(self) -> dict[str, Any]:
        """What the API says of the dataset."""
        return {
            "id": self.repo,
            "sha": COMMIT,
            "private": False,
            "downloads": 0,
            "likes": 0,
            "tags": [],
            "cardData": {"license": "gpl-3.0"},
            "siblings": [self._sibling(name, content) for name, content in self.files.items()],
        }

    def _sibling(self, name: str, content: bytes) -> dict[str, Any]:
        blob = hashlib.sha1(f"blob {len(content)}\0".encode() + content).hexdigest()
        lfs = {"sha256": hashlib.sha256(content).hexdigest(), "size": len(content), "pointerSize": 130}
        return {
            "rfilename": name,
            "size": len(content),
            "blobId": blob,
            **({"lfs": lfs} if len(content) >= LARGE else {}),
        }


@contextmanager
def serve(hub: Hub) -> Iterator[Hub]:
    """Serve a dataset until the end of the block."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_HEAD(self) -> None:
            self._answer(False)

        def do_GET(self) -> None:
            self._answer(True)

        def _answer(self, with_body: bool) -> None:
            path = unquote(urlsplit(self.path).path)
            if path.startswith(f"/api/datasets/{hub.repo}"):
                self._send(
                    200, json.dumps(hub.info()).encode(), {"Content-Type": "application/json"}, with_body
                )
                return
            name = path.removeprefix(f"/datasets/{hub.repo}/resolve/{COMMIT}/")
            if name not in hub.files:
                self._send(404, b"{}", {"X-Error-Code": "RepoNotFound"}, with_body)
                return
            content = hub.files[name]
            etag = hashlib.sha256(content).hexdigest()
            served = bytes(len(content)) if name in hub.tampered else content
            start = 0
            if (asked := self.headers.get("Range", "")).startswith("bytes="):
                start = int(asked.removeprefix("bytes=").partition("-")[0] or 0)
            headers = {"ETag": f'"{etag}"', "X-Repo-Commit": COMMIT, "Accept-Ranges": "bytes"}
            if start:
                headers["Content-Range"] = f"bytes {start}-{len(content) - 1}/{len(content)}"
            if with_body:
                hub.fetched.append((name, start))
            self._send(206 if start else 200, served[start:], headers, with_body)

        def _send(self, status: int, body: bytes, headers: Mapping[str, str], with_body: bool) -> None:
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            if not with_body:
                return
            if hub.cut_after is not None and len(body) > hub.cut_after and "ETag" in headers:
                self.wfile.write(body[: hub.cut_after])
                hub.cut_after, self.close_connection = None, True
                return
            self.wfile.write(body)

        def log_message(self, *arguments: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    hub.endpoint = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
