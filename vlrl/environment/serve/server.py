"""The HTTP side of `vlrl env serve`.

    GET    /health                 how full it is; the one call that needs no token
    GET    /env                    what is served: name, options, instructions, tools, agents
    GET    /metrics                what Prometheus asks for, see `vlrl.environment.serve.metrics`
    PUT    /sessions/ID            begin an episode: {"task", "seed"}; the client makes the ID up
    POST   /sessions/ID/step       {"number", "action", "canvases"}
    DELETE /sessions/ID            end it

Answers to PUT and POST are in the form of `vlrl.environment.serve.wire`; refusals are JSON: kind, reason,
trace. Every answer names the server's instance, made up when it starts; who names another one is refused. So
an episode is never resumed by a server that was started again, or by another machine behind the same address.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import secrets
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from vlrl.config.rollout import EnvConfig
from vlrl.coordinates import Canvas
from vlrl.environment.host.answers import Traits
from vlrl.environment.host.failure import EnvFailure
from vlrl.environment.host.host import EnvHost
from vlrl.environment.listening import reached_at, require_secret
from vlrl.environment.serve.metrics import TEXT_FORMAT, ServerMetrics
from vlrl.environment.serve.sessions import SessionRefused, Sessions
from vlrl.environment.serve.wire import CONTENT_TYPE, Form, dumps
from vlrl.errors import ConfigError, ResourceError, VlrlError
from vlrl.types import EnvTask

if TYPE_CHECKING:
    from aiohttp import web

    _Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

INSTANCE_HEADER = "Vlrl-Instance"
MAX_BODY_BYTES = 64 * 2**20
"""The longest request: a task and the model's text."""


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """What is served, and within which limits.

    Attributes:
        name: of the environment.
        options: its own; a client cannot change them.
        token: that clients must have.
        max_sessions: most episodes at once.
        lease_s: an episode whose client is silent for so long is ended.
        config: where environments run, and the limits of their calls.
    """

    name: str
    options: Mapping[str, Any]
    token: str
    max_sessions: int = 64
    lease_s: float = 600.0
    config: EnvConfig = field(default_factory=EnvConfig)


class EnvServer:
    """Serves one environment, in the event loop in which it is opened.

    Attributes:
        instance: made up when the server is.
    """

    def __init__(self, options: ServeOptions) -> None:
        self.instance = secrets.token_hex(8)
        self._options = options
        self._traits = Traits("", (), {})

    @asynccontextmanager
    async def open(self, host: str, port: int) -> AsyncIterator[str]:
        """Serve inside the block, at the address that it is given.

        The environment is made once first, so that a wrong option shows at once.

        Raises:
            ConfigError, EnvFailure: of the environment's constructor.
            ConfigError: if other machines reach it and its token is none.
            ResourceError: if the port is in use.
        """
        from aiohttp import web

        options = self._options
        require_secret(host, options.token, "give --token, or VLRL_ENV_TOKEN, a secret")
        metrics = ServerMetrics.if_installed()
        around = metrics.around if metrics is not None else None
        with EnvHost(options.config, max_open=options.max_sessions, around=around) as envs:
            await self._learn(envs)
            sessions = Sessions(envs, options.name, options.options, options.max_sessions, options.lease_s)
            expiry = asyncio.create_task(sessions.expire())
            runner = web.AppRunner(self._app(sessions, metrics), access_log=None, shutdown_timeout=1.0)
            try:
                await runner.setup()
                try:
                    await web.TCPSite(runner, host, port).start()
                except OSError as error:
                    raise ResourceError(f"{host} port {port}: {error.strerror}; give --port 0") from error
                yield f"http://{reached_at(host)}:{runner.addresses[0][1]}"
            finally:
                expiry.cancel()
                await sessions.close()
                await runner.cleanup()

    async def _learn(self, envs: EnvHost) -> None:
        env = await envs.open(EnvTask(self._options.name, self._options.options))
        self._traits = Traits(env.system_prompt, env.tools, env.system_prompts, env.sees)
        await env.close()

    def _app(self, sessions: Sessions, metrics: ServerMetrics | None) -> web.Application:
        from aiohttp import web

        routes = _Routes(self._options, self.instance, self._traits, sessions, metrics)

        async def guard(request: web.Request, handler: _Handler) -> web.StreamResponse:
            return await routes.guard(request, handler)

        app = web.Application(client_max_size=MAX_BODY_BYTES, middlewares=[web.middleware(guard)])
        app.router.add_get("/health", routes.health)
        app.router.add_get("/env", routes.env)
        app.router.add_get("/metrics", routes.metrics)
        app.router.add_put("/sessions/{id}", routes.begin)
        app.router.add_post("/sessions/{id}/step", routes.step)
        app.router.add_delete("/sessions/{id}", routes.end)
        return app


class _Routes:
    def __init__(
        self,
        options: ServeOptions,
        instance: str,
        traits: Traits,
        sessions: Sessions,
        metrics: ServerMetrics | None,
    ) -> None:
        self._options, self._instance, self._traits = options, instance, traits
        self._sessions, self._metrics = sessions, metrics

    async def guard(self, request: web.Request, handler: _Handler) -> web.StreamResponse:
        """Refuse who has no token or means another instance; failures become answers."""
        try:
            self._admit(request)
            response = await handler(request)
        except SessionRefused as refused:
            response = _refusal(refused.status, refused.kind, str(refused))
        except EnvFailure as failure:
            response = _refusal(500, failure.kind, failure.reason, failure.trace)
        except ConfigError as error:
            response = _refusal(422, "config", str(error))
        except VlrlError as error:  # no process could be started, or the server is closing
            response = _refusal(500, "died", str(error))
        response.headers[INSTANCE_HEADER] = self._instance
        return response

    def _admit(self, request: web.Request) -> None:
        if request.path == "/health":
            return
        given = request.headers.get("Authorization", "").removeprefix("Bearer ").encode()
        if not hmac.compare_digest(given, self._options.token.encode()):
            raise SessionRefused(401, "token", "no token, or a wrong one")
        meant = request.headers.get(INSTANCE_HEADER, self._instance)
        if meant != self._instance:
            raise SessionRefused(
                409, "instance", f"this is instance {self._instance}, not {meant}: it was restarted"
            )

    async def health(self, request: web.Request) -> web.Response:
        from aiohttp import web

        load = {"num_sessions": len(self._sessions), "max_sessions": self._sessions.max_sessions}
        return web.json_response({"status": "ok", "instance": self._instance, **load})

    async def env(self, request: web.Request) -> web.Response:
        from aiohttp import web

        traits = {**self._traits._asdict(), "tools": list(self._traits.tools)}
        served = {"env": self._options.name, "options": dict(self._options.options)}
        return web.json_response({**served, **traits, "lease_s": self._sessions.lease_s})

    async def metrics(self, request: web.Request) -> web.Response:
        from aiohttp import web

        if self._metrics is None:
            raise ConfigError("/metrics needs: pip install vlrl[prometheus], where the server runs")
        text = self._metrics.text(self._sessions)
        return web.Response(body=text, headers={"Content-Type": TEXT_FORMAT})

    async def begin(self, request: web.Request) -> web.Response:
        asked = await _read(request)
        task, seed = asked.get("task"), asked.get("seed")
        if not isinstance(task, dict) or not isinstance(seed, int):
            raise SessionRefused(400, "request", "begin takes a task (a mapping) and a seed (a whole number)")
        shown = await self._sessions.begin(request.match_info["id"], task, seed)
        return await self._answer(shown, asked)

    async def step(self, request: web.Request) -> web.Response:
        asked = await _read(request)
        number, action = asked.get("number"), asked.get("action")
        if not isinstance(number, int) or not isinstance(action, str | dict):
            raise SessionRefused(
                400, "request", "a step takes a number and an action (a text, or one of each agent)"
            )
        try:
            canvases = [_canvas(*each) for each in asked.get("canvases", ())]
        except (TypeError, ValueError, IndexError) as error:
            raise SessionRefused(400, "request", f"canvases: {error}") from error
        result = await self._sessions.step(request.match_info["id"], number, action, canvases)
        return await self._answer(result, asked)

    async def end(self, request: web.Request) -> web.Response:
        from aiohttp import web

        await self._sessions.end(request.match_info["id"])
        return web.Response(status=204)

    async def _answer(self, value: Any, asked: Mapping[str, Any]) -> web.Response:
        from aiohttp import web

        form: Form = "png" if asked.get("images") == "png" else "raw"
        # Compressing takes as long as many a step: not in the loop that answers everybody.
        body = await asyncio.to_thread(dumps, value, form) if form == "png" else dumps(value, form)
        return web.Response(body=body, content_type=CONTENT_TYPE)


def _refusal(status: int, kind: str, reason: str, trace: str = "") -> web.StreamResponse:
    from aiohttp import web

    return web.json_response({"kind": kind, "reason": reason, "trace": trace}, status=status)


def _canvas(original_size: list[int], size: list[int], frame: str) -> Canvas:
    return Canvas((original_size[0], original_size[1]), (size[0], size[1]), frame)


async def _read(request: web.Request) -> dict[str, Any]:
    try:
        asked = json.loads(await request.read())
    except ValueError as error:
        raise SessionRefused(400, "request", f"the body is not JSON: {error}") from error
    if not isinstance(asked, dict):
        raise SessionRefused(400, "request", "the body is not a JSON object")
    return asked


def serve(options: ServeOptions, host: str, port: int, on_ready: Callable[[str], None]) -> None:
    """Serve until Ctrl-C or SIGTERM; the arguments are those of `EnvServer.open`.

    Args:
        options: what is served.
        host: address that is listened on.
        port: 0 is any that is free.
        on_ready: called with the server's address.
    """

    async def run() -> None:
        stop = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
        async with EnvServer(options).open(host, port) as url:
            on_ready(url)
            await stop.wait()

    asyncio.run(run())
