"""An engine that is a server elsewhere, behind the interface of an engine's actor."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from functools import partial
from typing import Any

from vlrl.choices import MachineChoice
from vlrl.config import Config
from vlrl.engine.api.options import TOKEN_VARIABLE
from vlrl.engine.arguments import engine_arguments
from vlrl.engine.client.shared_media import fetch_media
from vlrl.engine.external.connection import ServerConnection
from vlrl.engine.external.requests import PATH, body_of, data_urls, generation_from
from vlrl.engine.external.same_engine import require_same_engine
from vlrl.engine.joint_batches import EngineActor
from vlrl.engine.requests import EngineRequest, GenerationResult, Load
from vlrl.errors import EngineDied, EngineError
from vlrl.types import Generation
from vlrl.weights.manifest import Manifest


class ServerActor(EngineActor):
    """Has a server generate, and load weights. It computes nothing itself.

    A batch's requests are sent at once; which of them vLLM computes together is the server's to say, so that
    the last bits of a run with servers differ from those of the same run again (law 8).
    """

    def __init__(
        self,
        config: Config,
        banned_token_ids: Sequence[int],
        stop_token_ids: Sequence[int],
        engine_options: Mapping[str, Any],
        number: int,
    ) -> None:
        """Make the actor of the server with this number among generator.servers."""
        super().__init__()
        self._config, self._number = config, number
        self._banned_token_ids, self._stop_token_ids = list(banned_token_ids), list(stop_token_ids)
        self._engine_options = dict(engine_options)
        url = config.generator.servers[number]
        self._server = ServerConnection(url, os.environ.get(TOKEN_VARIABLE, ""))
        self._running: dict[str, asyncio.Task[Generation]] = {}

    async def start(self) -> float:
        """Wait for the server, and end what an earlier run left there; seconds it took.

        Raises:
            EngineDied: if it does not answer for ray.start_timeout_s.
            ConfigError: if it is another engine than the run's, see `require_same_engine`.
        """
        begin = time.perf_counter()
        await self._server.open(self._config.ray.start_timeout_s)
        info = await self._server.get("/server_info", config_format="json")
        # Of the arguments only those are compared that are the same on GPUs and on CPUs.
        arguments = engine_arguments(self._config, self._banned_token_ids, self._engine_options, on_gpu=True)
        require_same_engine(self._server.url, info["vllm_config"], arguments)
        await self._server.post("/abort_requests", {})
        await self._server.post("/resume")
        return time.perf_counter() - begin

    async def generate(
        self, requests: Sequence[EngineRequest], references: Mapping[str, Any]
    ) -> AsyncIterator[tuple[int, GenerationResult, Load | None]]:
        """Generate requests beside those that run: each one's index and result as soon as it is done."""
        tasks = await self._started(requests, references)
        indices, waiting = {task: index for index, task in enumerate(tasks)}, set(tasks)
        try:
            while waiting:
                first = asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                done, waiting = await self._server.while_alive(first)
                for task in done:
                    yield indices[task], _result_of(task), None
        finally:
            for task in waiting:
                task.cancel()

    async def abort(self, names: Sequence[str]) -> None:
        """Forget requests: the connection ends, and vLLM aborts what came by it."""
        for name in names:
            if task := self._running.get(name):
                task.cancel()

    async def update(self, manifest: Manifest, version: int) -> float:
        """Load weights when all that runs is done; seconds for which nothing was begun.

        Raises:
            EngineError: if the server cannot load them.
        """
        begin = time.perf_counter()
        first_member = 1 + self._number * self._config.generator.tensor_parallel_size
        await self._server.while_alive(self._server.post("/pause", mode="wait"))
        call = {"method": "receive_weights_of", "args": [manifest.as_json(), first_member]}
        await self._server.post("/collective_rpc", call)
        reset = await self._server.post("/reset_prefix_cache")
        if not reset["success"]:
            raise EngineError(f"{self._server.url} could not reset its prefix cache; start it again")
        await self._server.post("/reset_encoder_cache")
        await self._server.post("/update_weight_version", {"new_version": str(version)})
        await self._server.post("/resume")
        return time.perf_counter() - begin

    async def choices(self) -> list[MachineChoice]:
        """Nothing: a server has told whoever started it."""
        return []

    async def _generate_whole(
        self, requests: Sequence[EngineRequest], references: Mapping[str, Any]
    ) -> list[Generation]:
        """Generate requests together; the first failure ends all of them."""
        tasks = await self._started(requests, references)
        try:
            return await self._server.while_alive(_all_of(tasks))
        finally:
            for task in tasks:
                task.cancel()

    async def _started(
        self, requests: Sequence[EngineRequest], references: Mapping[str, Any]
    ) -> list[asyncio.Task[Generation]]:
        urls = await asyncio.to_thread(lambda: data_urls(fetch_media(references)))
        tasks = [asyncio.create_task(self._generated(request, urls)) for request in requests]
        for request, task in zip(requests, tasks, strict=True):
            self._running[request.name] = task
            task.add_done_callback(partial(self._forget, request.name))
        return tasks

    def _forget(self, name: str, _: asyncio.Task[Generation]) -> None:
        self._running.pop(name, None)

    async def _generated(self, request: EngineRequest, urls: Mapping[str, str]) -> Generation:
        body = body_of(request, urls, self._stop_token_ids)
        return generation_from(await self._server.post(PATH, body), request)


async def _all_of(tasks: Sequence[asyncio.Task[Generation]]) -> list[Generation]:
    return list(await asyncio.gather(*tasks))


def _result_of(task: asyncio.Task[Generation]) -> GenerationResult:
    """A request's result; that the server is dead concerns all of them.

    Raises:
        EngineDied: if the request was lost with its server.
    """
    if task.cancelled():
        return EngineError("the request was given up")
    error = task.exception()
    if isinstance(error, EngineDied):
        raise error
    if isinstance(error, Exception):
        return error
    return task.result()
