"""`vlrl agent`: the live page of an agent at work, served to this machine alone."""

from __future__ import annotations

import asyncio
import queue
import secrets
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from vlrl.chat.agent import AgentRun
from vlrl.chat.local_page import HEADERS, LocalAddress
from vlrl.env_play.view import view_of
from vlrl.process.serving import serve_until
from vlrl.viewer.page import render_page

if TYPE_CHECKING:
    from aiohttp import web

WAKE_S = 0.3


class Decisions:
    """What the person on the page decides of proposed actions."""

    def __init__(self) -> None:
        """Nothing is decided yet."""
        self._given: queue.SimpleQueue[bool] = queue.SimpleQueue()

    def give(self, is_allowed: bool) -> None:
        """Decide about the action that is proposed now."""
        self._given.put(is_allowed)

    def wait(self, is_over: Callable[[], bool]) -> bool:
        """The decision about the action that is proposed now; False once `is_over` says so."""
        while not self._given.empty():  # about an action before
            self._given.get()
        while not is_over():
            try:
                return self._given.get(timeout=WAKE_S)
            except queue.Empty:
                continue
        return False


class AgentPage:
    """The page of one run, from its start until `shutdown`.

    Attributes:
        url: of the page, with a secret part.
    """

    def __init__(self, run: AgentRun, decisions: Decisions, *, port: int = 0) -> None:
        """Listen; port 0 is any that is free.

        Raises:
            ResourceError: if it is not.
        """
        self._address = LocalAddress(port)
        self.url = self._address.url
        self._run, self._decisions = run, decisions
        self._stopped: Future[None] = Future()
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._serve()), name="agent-page", daemon=True
        )
        self._thread.start()

    def shutdown(self) -> None:
        """End it."""
        self._stopped.set_result(None)
        self._thread.join()

    async def _serve(self) -> None:
        from aiohttp import web

        app = web.Application()
        app.router.add_get("/{token}/", self._page)
        app.router.add_get("/{token}/view", self._view)
        app.router.add_post("/{token}/{what}", self._post)
        await serve_until(app, self._address.socket, self._stopped)

    async def _page(self, request: web.Request) -> web.Response:
        from aiohttp import web

        if not self._address.has_secret(request):
            return web.Response(status=404, headers=HEADERS)
        name, nonce = self._run.game.name, secrets.token_urlsafe(16)
        text = render_page("agent.html.j2", name=name, nonce=nonce)
        return web.Response(text=text, content_type="text/html", charset="utf-8", headers=HEADERS)

    async def _view(self, request: web.Request) -> web.Response:
        from aiohttp import web

        if not self._address.has_secret(request):
            return web.Response(status=404, headers=HEADERS)
        return web.json_response(await asyncio.to_thread(self.view), headers=HEADERS)

    def view(self) -> dict[str, Any]:
        """What the page shows."""
        run, game = self._run, view_of(self._run.game)
        return {
            **{key: game[key] for key in ("observation", "task", "turns", "total", "success")},
            "state": run.state,
            "proposed": run.proposed,
            "error": run.error,
        }

    async def _post(self, request: web.Request) -> web.Response:
        from aiohttp import web

        buttons: dict[str, Callable[[], None]] = {
            "pause": self._run.pause,
            "resume": self._run.resume,
            "stop": self._run.stop,
            "allow": lambda: self._decisions.give(True),
            "refuse": lambda: self._decisions.give(False),
        }
        what = request.match_info["what"]
        if not self._address.has_secret(request) or what not in buttons:
            return web.Response(status=404, headers=HEADERS)
        buttons[what]()
        return web.json_response({}, headers=HEADERS)
