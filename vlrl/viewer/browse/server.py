"""The server of `vlrl view`: the page, its JSON and its images; a token where others can reach it."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import json
import re
import secrets
import socket
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from vlrl.errors import DataError, ResourceError, VlrlError
from vlrl.process.serving import serve_until
from vlrl.viewer.browse.answers import ViewAnswers
from vlrl.viewer.browse.media import media_file, thumbnail

if TYPE_CHECKING:
    from aiohttp import web

PAGE = Path(__file__).parent / "page"
PAGE_FILE = re.compile(r"(rollouts/)?[a-z_]+\.(html|js|css|svg)")
KINDS = {"html": "text/html", "js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""No script but the page's files, nothing from elsewhere; index.html says the same for the written folder."""
HEADERS = {
    "Content-Security-Policy": POLICY,
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
FOREVER = {**HEADERS, "Cache-Control": "private, max-age=86400, immutable"}
"""Of an image: its name is the hash of what it shows."""


class ViewServer:
    """Serves runs; a context manager.

    Attributes:
        port: that it listens on.
        token: a secret part of the address; "" on loopback.
        url: of the page, the token included.
    """

    def __init__(self, answers: ViewAnswers, *, host: str = "127.0.0.1", port: int = 0) -> None:
        """Listen.

        Args:
            answers: what is served.
            host: address to listen on; any but loopback needs the token, which is random.
            port: 0 is any that is free.

        Raises:
            ResourceError: if the address or the port is not available.
        """
        self._answers = answers
        self._is_loopback = _is_loopback(host)
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        try:
            self._socket = socket.create_server((host, port), family=family)
        except OSError as error:
            raise ResourceError(f"{host}, port {port}: {error.strerror or error}; give --port 0") from error
        self.port = self._socket.getsockname()[1]
        self.token = "" if self._is_loopback else secrets.token_urlsafe(24)
        shown = f"[{host}]" if ":" in host else socket.getfqdn() if host == "0.0.0.0" else host
        self.url = f"http://{shown}:{self.port}/" + (f"{self.token}/" if self.token else "")
        self._stopped: Future[None] = Future()

    def serve_forever(self) -> None:
        """Answer requests until `shutdown`, or Ctrl-C."""
        asyncio.run(self._serve())

    def shutdown(self) -> None:
        """End `serve_forever`, which may run in another thread, or begin later."""
        self._stopped.set_result(None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    async def _serve(self) -> None:
        from aiohttp import web

        app = web.Application()
        app.router.add_get("/{path:.*}", self._get)
        await serve_until(app, self._socket, self._stopped)

    async def _get(self, request: web.Request) -> web.StreamResponse:
        path = self._path(request)
        if path is None:
            return _missing("not found")
        folder, _, rest = path.partition("/")
        if folder == "data":
            return await self._json(rest.removesuffix(".json"))
        if folder in ("media", "thumb"):
            return await self._image(folder, rest, request.query.get("frames", "1"))
        return self._file(path or "index.html")

    def _path(self, request: web.Request) -> str | None:
        """The path below the token; None without it, or on loopback under another host's name.

        A page of another site could otherwise have its name resolve to this machine and read what is served.
        """
        path = request.path.removeprefix("/")
        if self._is_loopback:
            return path if _is_loopback(_host_of(request.headers.get("Host", ""))) else None
        token, slash, rest = path.partition("/")
        return rest if slash and secrets.compare_digest(token.encode(), self.token.encode()) else None

    async def _json(self, what: str) -> web.Response:
        from aiohttp import web

        try:
            answer = await asyncio.to_thread(self._answers.answer, what)
            text = await asyncio.to_thread(_dumps, answer)
        except VlrlError as error:
            return _missing(str(error))
        except Exception as error:  # a damaged file of a run: the page says so and goes on
            return _missing(f"cannot be read: {type(error).__name__}: {error}")
        response = web.Response(text=text, content_type="application/json", headers=HEADERS)
        response.enable_compression()
        return response

    async def _image(self, folder: str, path: str, frames: str) -> web.StreamResponse:
        from aiohttp import web

        key, _, name = path.partition("/")
        run = self._answers.runs.get(key)
        file = media_file(run.run_dir, name.rpartition(".")[0]) if run else None
        if file is None:
            return _missing("no such image")
        if folder == "media":
            return web.FileResponse(file, headers={**FOREVER, "Content-Type": "image/png"})
        count = int(frames) if frames.isascii() and frames.isdigit() and len(frames) < 6 else 1
        small = await asyncio.to_thread(thumbnail, file, count)
        if small is None:
            return _missing("not an image")
        return web.Response(body=small, content_type="image/webp", headers=FOREVER)

    def _file(self, name: str) -> web.Response:
        from aiohttp import web

        file = PAGE / name
        if not PAGE_FILE.fullmatch(name) or not file.is_file():
            return _missing("not found")
        kind = KINDS[name.rpartition(".")[2]]
        return web.Response(body=file.read_bytes(), content_type=kind, charset="utf-8", headers=HEADERS)


def serve(run_dirs: list[Path], *, host: str, port: int, on_ready: Callable[[str], None]) -> dict[str, Any]:
    """Serve the runs until Ctrl-C.

    Args:
        run_dirs: folders of runs.
        host: address to listen on.
        port: 0 is any that is free.
        on_ready: called with the page's address.

    Returns:
        The address.

    Raises:
        ConfigError: for a folder that is not a run's.
        ResourceError: if the port is in use.
    """
    with ViewServer(ViewAnswers(run_dirs), host=host, port=port) as server:
        on_ready(server.url)
        with contextlib.suppress(KeyboardInterrupt):  # the way to end it
            server.serve_forever()
        return {"url": server.url}


def _dumps(answer: dict[str, Any]) -> str:
    """Compact JSON; half surrogate pairs of a model's text are escaped, as they have no UTF-8."""
    try:
        return json.dumps(answer, allow_nan=False, separators=(",", ":"))
    except ValueError as error:
        raise DataError(f"a number is not finite: {error}") from error


def _missing(words: str) -> web.Response:
    from aiohttp import web

    return web.json_response({"error": words}, status=404, headers=HEADERS)


def _host_of(header: str) -> str:
    """The name in a Host header, without its port."""
    if header.startswith("["):
        return header[1:].partition("]")[0]
    return header.partition(":")[0]


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
