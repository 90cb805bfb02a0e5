"""HTTP to one engine server: what it answers, and whether it lives."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from typing import Any, TypeVar

import aiohttp

from vlrl.errors import EngineDied, EngineError

T = TypeVar("T")

CONNECT_S = 30.0
"""A server that takes longer to accept a connection, or to say that it lives, counts as dead."""
HEALTH_EVERY_S = 10.0
"""Seconds between questions to a server that is computing. One whose machine is gone closes no connection."""
POLL_S = 1.0
"""Seconds between tries while a server starts."""
MAX_SHOWN = 2000
"""Most characters of an answer in an error."""


class ServerConnection:
    """Requests to a server; belongs to the event loop in which `open` was awaited."""

    def __init__(self, url: str, token: str) -> None:
        """Make a connection that is not open yet; the token is empty where the server asks for none."""
        self.url, self._token = url, token

    async def open(self, timeout_s: float) -> None:
        """Wait until the server answers.

        Raises:
            EngineDied: after timeout_s.
        """
        headers = {"Authorization": f"Bearer {self._token}"} if self._token else {}
        self._session = aiohttp.ClientSession(
            headers=headers,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S),
            connector=aiohttp.TCPConnector(limit=0),
        )
        loop = asyncio.get_running_loop()
        end = loop.time() + timeout_s
        while True:
            try:
                return await self.require_alive()
            except EngineDied as error:
                if loop.time() > end:
                    raise EngineDied(
                        f"{self.url} (generator.servers) did not answer for {timeout_s:g} s "
                        f"(ray.start_timeout_s); start it with: vlrl engine CONFIG; {error}"
                    ) from error
            await asyncio.sleep(POLL_S)

    async def close(self) -> None:
        """Close all connections."""
        await self._session.close()

    async def get(self, path: str, **params: str) -> Any:
        """The JSON of an answer; errors as of `post`."""
        return await self._asked("GET", path, params, None)

    async def post(self, path: str, body: Mapping[str, Any] | None = None, **params: str) -> Any:
        """The JSON of an answer; None if it is empty.

        Raises:
            EngineDied: if the server cannot be reached, or the connection breaks.
            EngineError: for an answer that says of an error.
        """
        return await self._asked("POST", path, params, body)

    async def require_alive(self) -> None:
        """Raise EngineDied if the server does not answer that it lives."""
        try:
            async with asyncio.timeout(CONNECT_S):
                await self.get("/health")
        except (EngineError, TimeoutError) as error:
            raise EngineDied(f"{self.url} is not healthy: {error or 'no answer'}") from error

    async def while_alive(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of work that waits for the server, which is asked meanwhile whether it lives."""
        task = asyncio.ensure_future(work)
        try:
            while not (await asyncio.wait({task}, timeout=HEALTH_EVERY_S))[0]:
                await self.require_alive()
            return task.result()
        finally:
            task.cancel()

    async def _asked(
        self, method: str, path: str, params: Mapping[str, str], body: Mapping[str, Any] | None
    ) -> Any:
        try:
            async with self._session.request(method, self.url + path, params=params, json=body) as answer:
                if answer.status >= 400:
                    text = (await answer.text())[:MAX_SHOWN]
                    raise EngineError(f"{self.url}{path} answered {answer.status}: {text or answer.reason}")
                return await answer.json() if answer.content_type == "application/json" else None
        except aiohttp.ClientError as error:
            raise EngineDied(f"{self.url}{path}: {type(error).__name__}: {error}") from error
