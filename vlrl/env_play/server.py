"""The page's server: on this machine alone, and only for whoever has the token in its address."""

from __future__ import annotations

import io
import json
import secrets
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from vlrl.env_play.demonstrations import save
from vlrl.env_play.game import Game
from vlrl.env_play.gestures import screen_of, text_of
from vlrl.envs.observe import pixels_of
from vlrl.errors import DataError, ResourceError, VlrlError
from vlrl.protocols import Observation
from vlrl.viewer.page import render_page
from vlrl.viewer.pictures import data_uri

HOST = "127.0.0.1"
MAX_BODY = 1_000_000
"""Bytes of a request."""


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
        on_ready: told the page's address.

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


class PlayServer(ThreadingHTTPServer):
    """One game and its page. Requests come in threads; the environment lives in one of its own.

    Attributes:
        url: of the page, the token included.
        num_episodes: begun so far.
        num_saved: rows written so far.
    """

    daemon_threads = True

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
            super().__init__((HOST, port), _Handler)
        except OSError as error:
            raise ResourceError(f"port {port} cannot be had: {error.strerror}; give --port 0") from error
        self.token = secrets.token_urlsafe(24)
        self.url = f"http://{HOST}:{self.server_address[1]}/{self.token}/"
        self.num_episodes, self.num_saved, self._out = 1, 0, out
        # Some libraries want all of an environment's calls from the thread that made it.
        self._thread = ThreadPoolExecutor(1, "environment")
        try:
            self._game = self._thread.submit(Game, name, options, task, seed).result()
        except BaseException:
            self._thread.shutdown()
            self.server_close()
            raise

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
            raise DataError(f"{what!r} is none of {', '.join(handlers)}")
        return self._thread.submit(handlers[what], asked).result()

    def __exit__(self, *_: object) -> None:
        self.server_close()
        self._thread.submit(self._game.close).result()
        self._thread.shutdown()

    def _new(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        seed = str(asked.get("seed", "")).strip() or str(self._game.seed + 1)
        if not (seed.isascii() and seed.isdigit() and int(seed) < 2**63):
            raise DataError(f"seed {seed!r} is no whole number from 0 on")
        self._game.start(int(seed))
        self.num_episodes += 1
        return self._view(asked)

    def _act(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        self._game.act(str(asked.get("text", "")))
        return self._view(asked)

    def _do(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        text, is_all = text_of(self._game.env, asked)
        self._game.act(text)
        if not (is_all or self._game.is_over):
            self._game.act(text_of(self._game.env, asked)[0])
        return self._view(asked)

    def _undo(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        self._game.undo()
        return self._view(asked)

    def _hint(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        return {"text": self._game.hint()}

    def _save(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        saved = save(self._game, self._out)
        self.num_saved += saved["is_new"]
        return saved

    def _view(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        game = self._game
        return {
            "name": game.name,
            "options": _plain({**game.options, **game.task}),
            "seed": str(game.seed),
            "system_prompt": game.env.system_prompt,
            "tools": [tool["function"]["name"] for tool in game.env.tools],
            "tag": game.tag,
            "arrows": game.arrows,
            "screen": screen_of(game.env),
            "task": game.first.text,
            "observation": _shown(game.observation),
            "turns": [
                {
                    "action": move.action,
                    "reward": float(move.result.reward),
                    "invalid": bool(move.result.info.get("invalid", False)),
                    "reply": move.result.observation.text,
                }
                for move in game.moves
            ],
            "info": _plain(game.moves[-1].result.info) if game.moves else {},
            "total": game.total,
            "is_over": game.is_over,
            "success": game.success,
            "can_undo": game.can_undo and bool(game.moves),
            "can_hint": game.env.has("oracle") and not game.is_over,
        }


class _Handler(BaseHTTPRequestHandler):
    server: PlayServer
    server_version = "vlrl"

    def do_GET(self) -> None:
        """The page."""
        if self._place() != "":
            self._send(HTTPStatus.NOT_FOUND, {"error": "not found"})
            return
        body = self.server.page().encode()
        self._reply(HTTPStatus.OK, "text/html; charset=utf-8", body)

    def do_POST(self) -> None:
        """What the page asks for."""
        place = self._place()
        length = self.headers.get("Content-Length", "")
        if place is None or not length.isdigit() or int(length) > MAX_BODY:
            self._send(HTTPStatus.NOT_FOUND, {"error": "not found"})
            return
        try:
            asked = json.loads(self.rfile.read(int(length)) or b"{}")
        except ValueError as error:
            self._send(HTTPStatus.BAD_REQUEST, {"error": f"not understood: {error}"})
            return
        try:
            answer = self.server.answer(place, asked if isinstance(asked, dict) else {})
        except VlrlError as error:
            self._send(HTTPStatus.CONFLICT, {"error": str(error)})
        except Exception as error:  # a stranger's environment: the person is told, and can begin anew
            words = f"the environment raised {type(error).__name__}: {error}; vlrl env check says where"
            self._send(HTTPStatus.INTERNAL_SERVER_ERROR, {"error": words})
        else:
            self._send(HTTPStatus.OK, answer)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: the page shows what happens."""

    def _place(self) -> str | None:
        """The path below the token; None without the token, or under another host's name."""
        host = self.headers.get("Host", "").rpartition(":")[0]
        _, token, *rest = [*self.path.split("/"), ""][:3]
        is_ours = secrets.compare_digest(token.encode(), self.server.token.encode())
        return rest[0] if is_ours and host in (HOST, "localhost") else None

    def _send(self, status: HTTPStatus, value: Any) -> None:
        self._reply(status, "application/json", json.dumps(value).encode())

    def _reply(self, status: HTTPStatus, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()
        self.wfile.write(body)


def _shown(observation: Observation) -> dict[str, Any]:
    return {
        "text": observation.text,
        "role": observation.role,
        "images": [_picture(picture) for picture in observation.images],
        "videos": [
            {"fps": float(video.fps), "frames": [_picture(frame) for frame in video.frames]}
            for video in observation.videos
        ],
    }


def _picture(picture: Any) -> dict[str, Any]:
    pixels, out = pixels_of(picture), io.BytesIO()
    Image.fromarray(pixels).save(out, "PNG")
    return {"uri": data_uri(out.getvalue(), "png"), "width": pixels.shape[1], "height": pixels.shape[0]}


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """As JSON keeps them: numbers as numbers, all else as text."""
    return {
        str(name): value.item()
        if isinstance(value, np.generic)
        else value
        if isinstance(value, str | int | float | bool | None)
        else str(value)
        for name, value in values.items()
    }
