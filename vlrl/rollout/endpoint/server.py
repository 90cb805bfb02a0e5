"""The HTTP side: one server a run, in the driver's event loop, with a secret address for every episode."""

from __future__ import annotations

import asyncio
import hmac
import json
import os
import secrets
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from vlrl.environment.listening import reached_at, require_secret
from vlrl.rollout.endpoint.record import EndpointRecord
from vlrl.rollout.endpoint.refusal import Refused
from vlrl.rollout.endpoint.reply import Reply, completion, events
from vlrl.rollout.endpoint.request import Asked, read_request

if TYPE_CHECKING:
    from aiohttp import web

TOKEN_VARIABLE = "VLRL_ENDPOINT_TOKEN"
"""The environment variable with the key that every client must have; without it any key will do."""
MODEL = "policy"
"""The one model there is; requests may name any."""
MAX_BODY_BYTES = 256 * 2**20
"""Longest request; a conversation is sent again with all of its images every turn."""
NUM_REMEMBERED = 65_536
"""Ended episodes that are remembered, to answer late requests."""


@dataclass(slots=True)
class _Open:
    record: EndpointRecord
    answers: set[asyncio.Task[Reply]] = field(default_factory=set)


class Endpoint:
    """Serves the policy to agents, in one event loop; nothing is started before there is an agent."""

    def __init__(self, host: str = "127.0.0.1") -> None:
        """Choose the address.

        Raises:
            ConfigError: if other machines reach it and there is no key for them.
        """
        self._host, self._key = host, os.environ.get(TOKEN_VARIABLE, "")
        require_secret(host, self._key, f"set {TOKEN_VARIABLE} to a secret that agents give as their API key")
        self._runner: web.AppRunner | None = None
        self._starting = asyncio.Lock()
        self._port = 0
        self._open: dict[str, _Open] = {}
        self._ended: dict[str, None] = {}

    @asynccontextmanager
    async def serving(self, record: EndpointRecord) -> AsyncIterator[str]:
        """Serve an episode inside the block, at the base URL that the block is given.

        Later requests get the answer that the episode is over; those being generated are aborted.
        """
        await self._start()
        token = secrets.token_urlsafe(24)
        self._open[token] = of_episode = _Open(record)
        try:
            yield f"http://{reached_at(self._host)}:{self._port}/{token}/v1"
        finally:
            del self._open[token]
            self._ended[token] = None
            if len(self._ended) > NUM_REMEMBERED:
                del self._ended[next(iter(self._ended))]
            for answer in of_episode.answers:
                answer.cancel()

    async def close(self) -> None:
        """Stop the server; safe to call twice."""
        if self._runner is not None:
            runner, self._runner = self._runner, None
            await runner.cleanup()

    async def _start(self) -> None:
        from aiohttp import web

        async with self._starting:
            if self._runner is not None:
                return
            app = web.Application(client_max_size=MAX_BODY_BYTES)
            app.router.add_post("/{token}/v1/chat/completions", self._completions)
            app.router.add_get("/{token}/v1/models", self._models)
            app.router.add_route("*", "/{rest:.*}", self._elsewhere)
            self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
            await self._runner.setup()
            await web.TCPSite(self._runner, self._host, 0).start()
            self._port = self._runner.addresses[0][1]

    async def _completions(self, request: web.Request) -> web.StreamResponse:
        from aiohttp import web

        try:
            of_episode = self._episode(request)
            asked = read_request(await _json(request))
            reply = await self._answer(of_episode, asked)
        except Refused as refused:
            return _refusal(refused)
        headers = {"x-vlrl-ignored": ", ".join(asked.ignored)} if asked.ignored else {}
        created = int(time.time())
        if not asked.stream:
            return web.json_response(completion(reply, MODEL, created), headers=headers)
        text = "".join(events(reply, MODEL, created, include_usage=asked.include_usage))
        return web.Response(text=text, content_type="text/event-stream", headers=headers)

    async def _answer(self, of_episode: _Open, asked: Asked) -> Reply:
        """Generate in a task of its own, which ends with the episode and not with the client's connection."""
        task = asyncio.create_task(of_episode.record.answer(asked))
        of_episode.answers.add(task)
        await asyncio.wait([task])
        of_episode.answers.discard(task)
        if task.cancelled():
            raise _over()
        return task.result()

    async def _models(self, request: web.Request) -> web.Response:
        from aiohttp import web

        try:
            self._episode(request)
        except Refused as refused:
            return _refusal(refused)
        model = {"id": MODEL, "object": "model", "created": 0, "owned_by": "vlrl"}
        return web.json_response({"object": "list", "data": [model]})

    async def _elsewhere(self, request: web.Request) -> web.Response:
        known = "POST chat/completions and GET models"
        return _refusal(Refused(f"nothing is served here; there is {known}", status=404, code="not_found"))

    def _episode(self, request: web.Request) -> _Open:
        given = request.headers.get("Authorization", "").removeprefix("Bearer ").encode()
        if self._key and not hmac.compare_digest(given, self._key.encode()):
            raise Refused(
                f"no API key, or a wrong one; it is in {TOKEN_VARIABLE}", status=401, code="api_key"
            )
        token = request.match_info["token"]
        if token in self._open:
            return self._open[token]
        if token in self._ended:
            raise _over()
        raise Refused("no episode has this address", status=404, code="unknown_episode")


def api_key() -> str:
    """What agents are given as their API key: some clients insist on one."""
    return os.environ.get(TOKEN_VARIABLE) or "vlrl"


async def _json(request: web.Request) -> Any:
    from aiohttp import web

    try:
        return json.loads(await request.read())
    except web.HTTPRequestEntityTooLarge as error:
        limit = MAX_BODY_BYTES // 2**20
        raise Refused(f"the request is longer than {limit} MiB", status=413, code="too_long") from error
    except (ValueError, RecursionError) as error:
        raise Refused(f"the request's body is not JSON: {error}") from error


def _over() -> Refused:
    return Refused("this episode is over", status=410, code="episode_over")


def _refusal(refused: Refused) -> web.Response:
    from aiohttp import web

    # Clients try again what might go better next time; nothing here does.
    return web.json_response(refused.body, status=refused.status, headers={"x-should-retry": "false"})
