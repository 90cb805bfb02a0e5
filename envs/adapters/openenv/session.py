"""One session with an OpenEnv server, over its WebSocket; the server keeps an environment for each session.

The protocol is that of openenv-core 0.3 and openenv 0.4…0.10 (their HTTP routes /reset and /step make a new
environment for each request, so an episode cannot be played over them).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from functools import cache
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit

import httpx2

from vlrl.envs.adapters.packages import load
from vlrl.errors import ConfigError

MAX_MESSAGE_BYTES = 100 * 2**20
"""Longest message from the server: screenshots as nested lists are long."""

_SCHEMES = {"http": "ws", "https": "wss", "ws": "ws", "wss": "wss"}
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


class OpenEnvRefused(Exception):
    """The server did not accept an action's form; the message lists what it says about it."""


class OpenEnvSession:
    """A connection, opened by the first message and thrown away by the first failure."""

    def __init__(self, url: str, connect_timeout_s: float, timeout_s: float) -> None:
        """Take the address.

        Raises:
            ConfigError: for an address that is none.
        """
        parts = urlsplit(url)
        if parts.scheme not in _SCHEMES or not parts.hostname:
            raise ConfigError(
                f"openenv: url={url!r} is not an address; write for instance http://127.0.0.1:8000"
            )
        self.url = url.rstrip("/")
        self._address = f"{_SCHEMES[parts.scheme]}://{self.url.split('://', 1)[1]}/ws"
        self._direct = parts.hostname in _LOOPBACK
        self._connect_timeout_s, self._timeout_s = connect_timeout_s, timeout_s
        self._client: ModuleType = load("websockets.sync.client", "openenv", "vlrl[openenv]")
        errors = load("websockets.exceptions", "openenv", "vlrl[openenv]")
        self._network_errors: tuple[type[BaseException], ...] = (OSError, errors.WebSocketException)
        self._closed: type[BaseException] = errors.ConnectionClosed
        self._failures = (*self._network_errors, ValueError)
        self._stack = ExitStack()
        self._connection: Any = None

    def ask(self, kind: str, data: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Send one message and return the data of its answer.

        Raises:
            Refused: if the server says that an action is of no allowed form; the session goes on.
            TimeoutError: if the answer takes longer than `timeout_s`.
            ConnectionError: if the server is away, has no room, goes away, or says that it failed.
        """
        message = {"type": kind} if data is None else {"type": kind, "data": data}
        try:
            connection = self._connection or self._connect()
            with suppress(self._closed):  # a full server says so and closes before it is asked anything
                connection.send(json.dumps(message))
            answer = json.loads(connection.recv(timeout=self._timeout_s))
        except TimeoutError as error:
            self._drop()
            raise TimeoutError(f"{self.url}: no answer to {kind} within {self._timeout_s:g} s") from error
        except self._failures as error:
            self._drop()
            raise ConnectionError(f"{self.url}: went away during {kind}: {_said(error)}") from error
        if answer.get("type") != "error":
            return dict(answer.get("data", {}))
        problem = answer.get("data", {})
        if problem.get("code") == "VALIDATION_ERROR" and kind == "step":
            raise OpenEnvRefused(_listed(problem))
        self._drop()
        if problem.get("code") == "CAPACITY_REACHED":
            raise ConnectionError(
                f"{self.url}: {problem.get('message')}; start the server with a greater "
                "max_concurrent_envs, or lower episodes.max_episodes"
            )
        raise ConnectionError(
            f"{self.url}: failed in {kind}: {problem.get('code')}: {problem.get('message')}"
        )

    def close(self) -> None:
        """End the session, waiting until the server has freed its environment; safe to call twice."""
        if self._connection is None:
            return
        try:
            self._connection.send(json.dumps({"type": "close"}))
            self._connection.recv(timeout=min(self._timeout_s, 5.0))
        except self._network_errors:
            pass  # closed, as asked, or away: there is nothing left to free
        finally:
            self._drop()

    def _connect(self) -> Any:
        options: dict[str, Any] = {"open_timeout": self._connect_timeout_s, "max_size": MAX_MESSAGE_BYTES}
        if self._direct:
            options["proxy"] = None
        try:
            opened = self._client.connect(self._address, close_timeout=1.0, **options)
            self._connection = self._stack.enter_context(opened)
        except self._network_errors as error:
            raise ConnectionError(
                f"no OpenEnv server answers at {self.url} ({_said(error)}); start it, or correct url"
            ) from error
        return self._connection

    def _drop(self) -> None:
        self._stack.close()
        self._connection = None


@cache
def action_schema(url: str, timeout_s: float) -> dict[str, Any]:
    """JSON schema of a server's actions, without the field `metadata` that all OpenEnv actions have.

    Raises:
        ConnectionError: if there is no server or it gives none.
    """
    scheme, rest = url.split("://", 1)
    page = f"{'https' if scheme in ('https', 'wss') else 'http'}://{rest}/schema"
    try:
        with httpx2.Client(timeout=timeout_s, trust_env=urlsplit(url).hostname not in _LOOPBACK) as client:
            answer = client.get(page)
            answer.raise_for_status()
            schema: dict[str, Any] = answer.json()["action"]
    except (httpx2.HTTPError, ValueError, KeyError) as error:
        raise ConnectionError(f"no OpenEnv server gives its schema at {page}: {_said(error)}") from error
    properties = {name: given for name, given in schema.get("properties", {}).items() if name != "metadata"}
    return {**schema, "properties": properties}


def _listed(problem: Mapping[str, Any]) -> str:
    """What the server's pydantic says, one line a fault."""
    faults = problem.get("errors") or ()
    lines = [f"{'.'.join(map(str, fault.get('loc', ())))}: {fault.get('msg', '')}" for fault in faults]
    return "\n".join(lines) or str(problem.get("message", ""))


def _said(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"
