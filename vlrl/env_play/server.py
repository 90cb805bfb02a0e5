"""The page's server: on this machine only, for requests with the token in their address."""

from __future__ import annotations

import asyncio
import json
import secrets
import socket
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from vlrl.env_play.demonstrations import DemonstrationFile
from vlrl.env_play.game import PlayedGame
from vlrl.env_play.view import view_of
from vlrl.environment.plain import PlainEnv
from vlrl.errors import DataError, ResourceError, VlrlError
from vlrl.process.serving import serve_until
from vlrl.viewer.page import render_page

if TYPE_CHECKING:
    from aiohttp import web

HOST = "127.0.0.1"
MAX_BODY = 1_000_000
"""Bytes of a request."""
HEADERS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


def serve(
    name: str,
    options: Mapping[str, Any],
    task: Mapping[str, Any],
    *,
    seed: int,
    out: Path,
    port: int,
    on_ready: Callable[[str], None],
) -> dict[str, Any]:
    """Serve the page until Ctrl-C.

    Args:
        name: of the environment.
        options: its own.
        task: given to every reset.
        seed: of the first episode.
        out: folder of demonstrations.
        port: 0 is any that is free.
        on_ready: called with the page's address.

    Returns:
        url, num_episodes, num_saved and out.

    Raises:
        ConfigError: for an unknown name, a wrong option or a wrong task.
        ResourceError: if the port is in use.
    """
    with PlayServer(name, options, task, seed=seed, out=out, port=port) as server:
        on_ready(server.url)
        with suppress(KeyboardInterrupt):  # the way to end it
            server.serve_forever()
        return {
            "url": server.url,
            "num_episodes": server.num_episodes,
            "num_saved": server.num_saved,
            "out": str(out),
        }


class PlayServer:
    """One game and its page. The environment lives in a thread of its own.

    Attributes:
        port: that it listens on.
        token: a secret part of the address.
        url: of the page, the token included.
        num_episodes: begun so far.
        num_saved: rows written so far.
    """

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any],
        task: Mapping[str, Any],
        *,
        seed: int = 0,
        out: Path,
        port: int = 0,
    ) -> None:
        try:
            self._socket = socket.create_server((HOST, port))
        except OSError as error:
            raise ResourceError(f"port {port} is not available: {error.strerror}; give --port 0") from error
        self.port, self.token = self._socket.getsockname()[1], secrets.token_urlsafe(24)
        self.url = f"http://{HOST}:{self.port}/{self.token}/"
        self._stopped: Future[None] = Future()
        self.num_episodes, self.num_saved, self._out = 1, 0, out
        # Some libraries want all of an environment's calls from the thread that made it.
        self._thread = ThreadPoolExecutor(1, "environment")
        try:
            self._game = self._thread.submit(PlayedGame, name, options, task, seed).result()
        except BaseException:
            self._thread.shutdown()
            self._socket.close()
            raise

    def serve_forever(self) -> None:
        """Answer requests until `shutdown`, or Ctrl-C."""
        asyncio.run(self._serve())

    def shutdown(self) -> None:
        """End `serve_forever`, which may run in another thread, or begin later."""
        self._stopped.set_result(None)

    def page(self) -> str:
        """The page; it asks for everything else."""
        return render_page("play.html.j2", name=self._game.name, nonce=secrets.token_urlsafe(16))

    def answer(self, what: str, asked: Mapping[str, Any]) -> dict[str, Any]:
        """What a request of the page comes to.

        Raises:
            VlrlError: with words for the person.
        """
        handlers = {
            "view": self._view,
            "new": self._new,
            "act": self._act,
            "do": self._do,
            "undo": self._undo,
            "hint": self._hint,
            "save": self._save,
        }
        if what not in handlers:
            raise DataError(f"{what!r} is not one of {', '.join(handlers)}")
        return self._thread.submit(handlers[what], asked).result()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()
        self._thread.submit(self._game.close).result()
        self._thread.shutdown()

    async def _serve(self) -> None:
        from aiohttp import web

        app = web.Application(client_max_size=MAX_BODY)
        app.router.add_get("/{path:.*}", self._get)
        app.router.add_post("/{path:.*}", self._post)
        await serve_until(app, self._socket, self._stopped)

    async def _get(self, request: web.Request) -> web.Response:
        """Answer with the page."""
        from aiohttp import web

        if self._request_name(request) != "":
            return _json(HTTPStatus.NOT_FOUND, {"error": "not found"})
        return web.Response(text=self.page(), content_type="text/html", charset="utf-8", headers=HEADERS)

    async def _post(self, request: web.Request) -> web.Response:
        """Answer what the page asks for."""
        name, length = self._request_name(request), request.content_length
        if name is None or length is None or length > MAX_BODY:
            return _json(HTTPStatus.NOT_FOUND, {"error": "not found"})
        try:
            asked = json.loads(await request.read() or b"{}")
        except (ValueError, RecursionError) as error:
            return _json(HTTPStatus.BAD_REQUEST, {"error": f"not understood: {error}"})
        try:
            answer = await asyncio.to_thread(self.answer, name, asked if isinstance(asked, dict) else {})
        except VlrlError as error:
            return _json(HTTPStatus.CONFLICT, {"error": str(error)})
        except Exception as error:  # a foreign environment: the person sees it, and can begin again
            words = f"the environment raised {type(error).__name__}: {error}; vlrl env check says where"
            return _json(HTTPStatus.INTERNAL_SERVER_ERROR, {"error": words})
        return _json(HTTPStatus.OK, answer)

    def _request_name(self, request: web.Request) -> str | None:
        """The path below the token; None without the token, or under another host's name."""
        host = request.headers.get("Host", "").rpartition(":")[0]
        _, token, *rest = [*request.raw_path.split("/"), ""][:3]
        is_ours = secrets.compare_digest(token.encode(), self.token.encode())
        return rest[0] if is_ours and host in (HOST, "localhost") else None

    def _new(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        seed = str(asked.get("seed", "")).strip() or str(self._game.seed + 1)
        if not (seed.isascii() and seed.isdigit() and int(seed) < 2**63):
            raise DataError(f"seed {seed!r} is not a whole number from 0 on")
        self._game.start(int(seed))
        self.num_episodes += 1
        return self._view(asked)

    def _act(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        self._game.act(str(asked.get("text", "")))
        return self._view(asked)

    def _do(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        text, is_all = _text_of_gesture(self._game.env, asked)
        self._game.act(text)
        if not (is_all or self._game.is_over):
            self._game.act(_text_of_gesture(self._game.env, asked)[0])
        return self._view(asked)

    def _undo(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        self._game.undo()
        return self._view(asked)

    def _hint(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        return {"text": self._game.hint()}

    def _save(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        saved = DemonstrationFile(self._out).add(self._game)
        self.num_saved += saved["is_new"]
        return saved

    def _view(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        return view_of(self._game)


def _json(status: HTTPStatus, value: Any) -> web.Response:
    from aiohttp import web

    return web.json_response(value, status=status, headers=HEADERS)


def _text_of_gesture(env: PlainEnv, gesture: Mapping[str, Any]) -> tuple[str, bool]:
    if not hasattr(env.env, "text_of_gesture"):
        raise DataError("the environment is not a screen; write an action")
    found: tuple[str, bool] = env.env.text_of_gesture(gesture)
    return found
