"""Calls to a server, each within a deadline; what fails is an `EnvFailure` that says which call and why.

Only a call that may be made twice is tried twice: the caller says which. A deadline is for all attempts.
"""

from __future__ import annotations

import json
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from typing import Any
from urllib.parse import urlsplit

import httpx2

from vlrl.environment.host.failure import EnvFailure
from vlrl.errors import ConfigError

MAX_ANSWER_BYTES = 256 * 2**20
"""Longest answer: AndroidWorld writes a phone's screen as JSON numbers, 30 MB."""
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True, slots=True)
class Deadlines:
    """Seconds for each phase of an episode; a call that takes longer has failed.

    Attributes:
        connect_s: until a connection stands.
        health_s: for a sign of life.
        reset_s: for setting an episode up.
        step_s: for an action and the screenshot after it.
        verify_s: for how the task stands.
        close_s: for ending an episode.
    """

    connect_s: float = 5.0
    health_s: float = 5.0
    reset_s: float = 120.0
    step_s: float = 60.0
    verify_s: float = 60.0
    close_s: float = 5.0

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
                raise ConfigError(f"deadlines.{each.name}={value!r}; give seconds, more than 0")

    @classmethod
    def of(cls, given: Mapping[str, Any] | None) -> Deadlines:
        """Deadlines from an environment's option.

        Raises:
            ConfigError: for an unknown phase or a wrong number.
        """
        known = [each.name for each in fields(cls)]
        for name in given or {}:
            if name not in known:
                raise ConfigError(f"deadlines has no {name!r}; known: {', '.join(known)}")
        return cls(**(given or {}))


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """What a server said.

    Attributes:
        where: names the call in an error.
        status: of HTTP.
        headers: names in any case.
        body: all of it.
    """

    where: str
    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        """The body as JSON. Raises EnvFailure if it is none."""
        try:
            return json.loads(self.body)
        except ValueError as error:
            raise EnvFailure("raised", f"{self.where}: the answer is not JSON: {error}") from error

    def good(self) -> HttpAnswer:
        """Itself. Raises EnvFailure if its status is not a success."""
        if not 200 <= self.status < 300:
            said = self.body[:300].decode(errors="replace")
            raise EnvFailure("raised", f"{self.where}: status {self.status}: {said}")
        return self


class Caller:
    """One server, and the connection to it. Not for several threads at once."""

    def __init__(self, url: str, *, connect_s: float, token: str = "") -> None:
        """Take the address.

        Raises:
            ConfigError: for an address that is none.
        """
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigError(f"url={url!r} is not an address; write for instance http://127.0.0.1:8000")
        self.url = url.rstrip("/")
        self._connect_s = connect_s
        self._client = httpx2.Client(
            headers={"Authorization": f"Bearer {token}"} if token else {},
            verify=_certificates() if parts.scheme == "https" else False,
            trust_env=parts.hostname not in _LOOPBACK,
        )

    def call(
        self,
        method: str,
        path: str,
        limit_s: float,
        *,
        attempts: int = 1,
        retried: tuple[int, ...] = (502, 504),
        **request: Any,
    ) -> HttpAnswer:
        """Ask, and read the whole answer.

        Args:
            method: of HTTP.
            path: begins with /.
            limit_s: for all attempts together.
            attempts: 1, unless the server does the same once if it is asked twice.
            retried: statuses that are tried again, while there are attempts.
            **request: json, params or headers, of httpx2.

        Raises:
            EnvFailure: if there is no whole answer in time. An answer of any status is returned.
        """
        where = f"{method} {self.url}{path}"
        until = time.monotonic() + limit_s
        for attempt in range(attempts):
            try:
                answer = self._once(where, method, path, until, request)
                if answer.status not in retried or attempt == attempts - 1:
                    return answer
            except EnvFailure as failure:
                if failure.kind == "hung" or attempt == attempts - 1:
                    raise
            pause = min(0.05 * 2**attempt, 1.0)
            if time.monotonic() + pause >= until:
                raise EnvFailure(
                    "hung", f"{where}: no answer within {limit_s:g} s, in {attempt + 1} attempts"
                )
            time.sleep(pause)
        raise EnvFailure("died", f"{where}: no attempt was made")

    def close(self) -> None:
        """Give the connection up; safe to call twice."""
        self._client.close()

    def _once(
        self, where: str, method: str, path: str, until: float, request: Mapping[str, Any]
    ) -> HttpAnswer:
        left_s = max(until - time.monotonic(), 0.001)
        limits = httpx2.Timeout(left_s, connect=min(self._connect_s, left_s))
        try:
            with self._client.stream(method, self.url + path, timeout=limits, **request) as response:
                body = bytearray()
                for piece in response.iter_bytes():
                    body += piece
                    if len(body) > MAX_ANSWER_BYTES:
                        raise EnvFailure("raised", f"{where}: the answer is over {MAX_ANSWER_BYTES} bytes")
                    if time.monotonic() > until:  # of a server that sends a byte now and then
                        raise EnvFailure("hung", f"{where}: the answer took longer than {left_s:.3g} s")
                return HttpAnswer(where, response.status_code, response.headers, bytes(body))
        except httpx2.ConnectTimeout as error:
            raise EnvFailure("died", f"{where}: no connection within {limits.connect:.3g} s") from error
        except httpx2.TimeoutException as error:
            raise EnvFailure("hung", f"{where}: no answer within {left_s:.3g} s") from error
        except httpx2.ConnectError as error:
            raise EnvFailure("died", f"{where}: no server answers there: {error}") from error
        except httpx2.HTTPError as error:
            said = f"{type(error).__name__}: {error}"
            raise EnvFailure(
                "died", f"{where}: the connection broke before the answer was whole: {said}"
            ) from error


@cache
def _certificates() -> ssl.SSLContext:
    """Read once: it takes longer than many an episode."""
    return ssl.create_default_context()
