"""`vlrl chat --page`: a conversation on a page that is served to this machine alone."""

from __future__ import annotations

import asyncio
import json
import secrets
import webbrowser
from collections.abc import Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import typer

from vlrl.chat.conversation import Conversation
from vlrl.chat.local_page import HEADERS, LocalAddress
from vlrl.chat.reward_view import RewardView, plain_messages
from vlrl.errors import DataError, VlrlError
from vlrl.process.serving import serve_until
from vlrl.viewer.page import render_page

if TYPE_CHECKING:
    from aiohttp import web

MAX_BODY = 64 * 2**20
"""Bytes of a question with its images."""


def serve_page(
    conversation: Conversation, rewards: RewardView | None, *, port: int, open_browser: bool
) -> None:
    """Serve the page until Ctrl-C.

    Raises:
        ResourceError: if the port is in use.
    """
    server = PageServer(conversation, rewards, port=port)
    typer.echo(f"{server.url}  (Ctrl-C ends it)", err=True)
    if open_browser:
        webbrowser.open(server.url)
    with suppress(KeyboardInterrupt):  # the way to end it
        server.serve_forever()


class PageServer:
    """The page and its one conversation.

    Attributes:
        url: of the page, with a secret part.
    """

    def __init__(self, conversation: Conversation, rewards: RewardView | None, *, port: int = 0) -> None:
        """Listen; port 0 is any that is free.

        Raises:
            ResourceError: if it is not.
        """
        self._address = LocalAddress(port)
        self.url = self._address.url
        self._conversation, self._rewards = conversation, rewards
        self._stopped: Future[None] = Future()
        self._turn = asyncio.Lock()

    def serve_forever(self) -> None:
        """Answer requests until `shutdown`, or Ctrl-C."""
        asyncio.run(self._serve())

    def shutdown(self) -> None:
        """End `serve_forever`, which may run in another thread, or begin later."""
        self._stopped.set_result(None)

    async def _serve(self) -> None:
        from aiohttp import web

        app = web.Application(client_max_size=MAX_BODY)
        app.router.add_get("/{token}/", self._page)
        app.router.add_post("/{token}/{what}", self._post)
        await serve_until(app, self._address.socket, self._stopped)

    async def _page(self, request: web.Request) -> web.Response:
        from aiohttp import web

        if not self._address.has_secret(request):
            return web.Response(status=404, headers=HEADERS)
        text = render_page(
            "chat.html.j2",
            model=self._conversation.endpoint.model,
            has_rewards=self._rewards is not None,
            nonce=secrets.token_urlsafe(16),
        )
        return web.Response(text=text, content_type="text/html", charset="utf-8", headers=HEADERS)

    async def _post(self, request: web.Request) -> web.StreamResponse:
        """Answer a question in lines of JSON, or do what a button says."""
        from aiohttp import web

        what = request.match_info["what"]
        if not self._address.has_secret(request) or what not in ("ask", "undo", "clear"):
            return web.Response(status=404, headers=HEADERS)
        if what != "ask":
            self._conversation.undo() if what == "undo" else self._conversation.messages.clear()
            return web.json_response({}, headers=HEADERS)
        response = web.StreamResponse(headers={**HEADERS, "Content-Type": "application/x-ndjson"})
        await response.prepare(request)
        try:
            asked = json.loads(await request.read())
            async with self._turn:
                await self._answer(asked, response)
        except (VlrlError, ValueError, KeyError, TypeError) as error:
            await _write(response, {"error": str(error)})
        return response

    async def _answer(self, asked: Mapping[str, Any], response: web.StreamResponse) -> None:
        images = [{"type": "image_url", "image_url": {"url": _image(url)}} for url in asked["images"]]
        pieces = []
        async for piece in self._conversation.ask([*images, {"type": "text", "text": str(asked["text"])}]):
            pieces.append(piece)
            await _write(response, {"text": piece})
        if self._rewards is not None:
            before = plain_messages(self._conversation.messages[:-1])
            reference = str(asked.get("answer") or "") or None
            judged = await asyncio.to_thread(self._rewards.judge, before, "".join(pieces), reference)
            await _write(response, {"rewards": [asdict(each) for each in judged]})
        await _write(response, {"done": True})


def _image(url: Any) -> str:
    if not isinstance(url, str) or not url.startswith("data:image/"):
        raise DataError("an image must be a data: URL")
    return url


async def _write(response: web.StreamResponse, event: Mapping[str, Any]) -> None:
    await response.write(json.dumps(event).encode() + b"\n")
