"""Several servers of a model behind one address, by Ray Serve: health checks, retries, rolling updates.

A replica owns a server process. The front gives a request to a replica, and to another one if that dies
before the first byte of its answer was sent on.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from vlrl.engine.api.options import FRAME_HEADER, SIZES_HEADER
from vlrl.errors import ConfigError, EngineError

APPLICATION = "vlrl"
START_LIMIT_S = 900.0
NUM_ATTEMPTS = 6
"""Replicas that a request is sent to, one after the other, before it is given up."""
LOOPBACK = "127.0.0.1"
FORWARDED = ("authorization", "content-type", "accept")
RETURNED = ("content-type", SIZES_HEADER, FRAME_HEADER)
"""Headers of a request, and of an answer, that are passed on."""
EVENTS = "text/event-stream"
Asked = tuple[str, str, Mapping[str, str], bytes]
"""Method, path with query, headers, body."""


@dataclass(frozen=True, slots=True)
class ServerCommand:
    """How a replica starts its server.

    Attributes:
        arguments: the command line; `--host` and `--port` are added.
        environment: variables beside those of the replica's process.
        timeout_s: longest time without a byte of an answer.
        num_gpus: that a replica takes.
        max_requests: that a replica is given at once.
        max_body_bytes: longest request.
    """

    arguments: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    timeout_s: float = 310.0
    num_gpus: int = 0
    max_requests: int = 256
    max_body_bytes: int = 64 * 2**20


class ModelReplica:
    """A server process, and the way to it; Ray Serve makes one an actor for each replica."""

    def __init__(self, command: ServerCommand) -> None:
        """Start the server and wait until it answers.

        Raises:
            EngineError: if it ends, or takes too long.
        """
        import httpx2

        with socket.socket() as probe:
            probe.bind((LOOPBACK, 0))
            port = probe.getsockname()[1]
        place = ("--host", LOOPBACK, "--port", str(port))
        self._server = subprocess.Popen(  # it ends with this process, however that ends
            ["setpriv", "--pdeathsig", "TERM", *command.arguments, *place],
            env={**os.environ, **command.environment},
        )
        self._client = httpx2.AsyncClient(
            base_url=f"http://{LOOPBACK}:{port}", timeout=command.timeout_s, trust_env=False
        )
        until = time.monotonic() + START_LIMIT_S
        while self._server.poll() is None and time.monotonic() < until:
            with contextlib.suppress(httpx2.HTTPError):
                if httpx2.get(f"http://{LOOPBACK}:{port}/health", trust_env=False).status_code == 200:
                    return
            time.sleep(0.2)
        self.stop()
        raise EngineError("a replica's server did not start; its log is with those of Ray's workers")

    async def check_health(self) -> None:
        """Raise if the server is gone or does not answer: Ray Serve then replaces the replica."""
        self._require_server()
        answer = await self._client.get("/health", timeout=10.0)
        answer.raise_for_status()

    async def answer(self, asked: Asked) -> AsyncIterator[Any]:
        """(status, headers), then pieces of the answer's body as they come."""
        import httpx2

        method, path, headers, body = asked
        request = self._client.build_request(method, path, headers=dict(headers), content=body)
        try:
            response = await self._client.send(request, stream=True)
            try:
                yield (
                    response.status_code,
                    {name: response.headers[name] for name in RETURNED if name in response.headers},
                )
                async for piece in response.aiter_raw():
                    yield piece
            finally:
                await response.aclose()
        except httpx2.TransportError:
            await asyncio.sleep(0.1)  # until the operating system says that the process has ended
            self._require_server()
            raise

    def _require_server(self) -> None:
        """End this process if the server has ended: a replica that only refuses would be given the most."""
        if self._server.poll() is not None:
            os._exit(1)

    def stop(self) -> None:
        """Stop the server."""
        with contextlib.suppress(ProcessLookupError):
            self._server.send_signal(signal.SIGTERM)

    def __del__(self) -> None:
        """Stop the server with the replica."""
        if hasattr(self, "_server"):
            self.stop()


class Front:
    """Takes requests from Ray Serve's HTTP proxy and gives each to a replica that lives."""

    def __init__(self, replicas: Any, max_body_bytes: int) -> None:
        """Keep the handle of the replicas' deployment, and the length of a request at most."""
        self._max_body_bytes = max_body_bytes
        self._replicas = replicas.options(method_name="answer", stream=True)

    async def __call__(self, request: Any) -> Any:
        """Answer one HTTP request."""
        from starlette.responses import Response, StreamingResponse

        body = await _body(request, self._max_body_bytes)
        if body is None:
            return Response(status_code=413)
        headers = {name: request.headers[name] for name in FORWARDED if name in request.headers}
        path = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        asked = (request.method, path, headers, body)
        for attempt in range(NUM_ATTEMPTS):
            try:
                pieces = aiter(self._replicas.remote(asked))
                status, known = await anext(pieces)
                if not known.get("content-type", "").startswith(EVENTS):
                    whole = b"".join([piece async for piece in pieces])
                    return Response(whole, status_code=status, headers=known)
                first = await anext(pieces, b"")
            except (
                Exception
            ):  # whichever Ray, Serve and HTTP raise for a replica that dies: the next one is asked
                if attempt + 1 == NUM_ATTEMPTS:
                    raise
                await asyncio.sleep(0.2 * 2**attempt)
            else:
                return StreamingResponse(_joined(first, pieces), status_code=status, headers=known)
        raise AssertionError("every attempt returns or raises")


async def _body(request: Any, limit: int) -> bytes | None:
    read = bytearray()
    async for piece in request.stream():
        read += piece
        if len(read) > limit:
            return None
    return bytes(read)


async def _joined(first: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for piece in rest:
        yield piece


def serve_replicas(command: ServerCommand, *, num_replicas: int, host: str, port: int) -> None:
    """Start the replicas, or replace those of an earlier call one by one, and return when all answer.

    Ray must have been started or joined. Replicas with another command are replaced while others answer.

    Args:
        command: of every server.
        num_replicas: servers.
        host: address to listen at; the first call on a cluster fixes it, and `port`.
        port: likewise.

    Raises:
        ConfigError: if Ray Serve is not installed.
    """
    serve = _ray_serve()
    replicas = serve.deployment(
        name="model",
        num_replicas=num_replicas,
        max_ongoing_requests=command.max_requests,
        health_check_period_s=2.0,
        health_check_timeout_s=30.0,
        graceful_shutdown_timeout_s=command.timeout_s,
        ray_actor_options={"num_cpus": 0.5, "num_gpus": command.num_gpus},
    )(ModelReplica)
    front = serve.deployment(
        name="front", num_replicas=1, max_ongoing_requests=4096, ray_actor_options={"num_cpus": 0.1}
    )(Front)
    serve.start(http_options={"host": host, "port": port})
    serve.run(front.bind(replicas.bind(command), command.max_body_bytes), name=APPLICATION, route_prefix="/")


def stop_replicas() -> None:
    """Stop all replicas and the proxy."""
    _ray_serve().shutdown()


def _ray_serve() -> Any:
    try:
        from ray import serve
    except ImportError as error:
        raise ConfigError("--replicas needs Ray Serve: pip install 'vlrl[serve]'") from error
    return serve
