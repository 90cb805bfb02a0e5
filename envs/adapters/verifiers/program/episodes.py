"""The episodes of one verifiers environment, many at once."""

from __future__ import annotations

import asyncio
import importlib
import itertools
import os
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import verifiers.v1 as vf
from aiohttp import web
from conversation import Conversation
from verifiers.v1.clients.client import SESSION_ID_HEADER
from verifiers.v1.utils.loaders import default_harness_id

CHAT_HARNESS = "vlrl_chat"


class Episodes:
    """Answers requests: each method is one, its arguments are the request's keys."""

    def __init__(self, env: vf.Env) -> None:
        self.env = env
        self._tasks: list[vf.Task] = []
        self._source: Iterator[vf.Task] = iter(env.taskset)
        self._playing: dict[str, tuple[Conversation, asyncio.Task[vf.Episode]]] = {}
        self._client: vf.ClientConfig | None = None
        self._described: dict[str, Any] | None = None
        self._describing = asyncio.Lock()

    @property
    def num_playing(self) -> int:
        """Episodes under way."""
        return len(self._playing)

    async def serve(self) -> web.AppRunner:
        """Start the model's endpoint on a free port of this machine."""
        app = web.Application(client_max_size=2**30)
        app.router.add_post("/v1/chat/completions", self._complete)
        # A call whose episode has been closed is dropped, so that nothing waits for its answer.
        runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=1.0)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        port = runner.addresses[0][1]
        self._client = vf.EvalClientConfig(base_url=f"http://127.0.0.1:{port}/v1", api_key_var="VLRL_NO_KEY")
        return runner

    async def describe(self) -> dict[str, Any]:
        """Number of tasks (null: endless), and the tools and system prompt of the first."""
        async with self._describing:
            if self._described is None:
                first = await self.reset("describe", 0)
                await self.close("describe")
                system = [m["content"] for m in first["messages"] if m["role"] == "system"]
                count = sum(1 for _ in self._up_to(None)) if self.env.taskset.bounded else None
                self._described = {"num_tasks": count, "tools": first["tools"], "system": system}
            return self._described

    async def task(self, index: int) -> dict[str, Any]:
        """A task's data."""
        task = self._task(index)
        return {"key": task.key, "data": task.data.model_dump(mode="json", exclude_none=True)}

    async def reset(self, episode: str, index: int) -> dict[str, Any]:
        """Start an episode; the answer is like that of `step`."""
        await self.close(episode)
        conversation = Conversation()
        context = vf.ModelContext(model=episode, client=self._client)
        playing = asyncio.create_task(self.env.run_episode(self._task(index), context))
        self._playing[episode] = (conversation, playing)
        return await self._next(episode)

    async def step(self, episode: str, content: str, thinking: str, tool_calls: list[Any]) -> dict[str, Any]:
        """Answer the model's call: {"messages", "tools"} of the next call, or the "result" of the episode."""
        conversation, _ = self._playing[episode]
        conversation.act({"content": content, "thinking": thinking, "tool_calls": tool_calls})
        return await self._next(episode)

    async def close(self, episode: str) -> dict[str, Any]:
        """End an episode, whatever it is at."""
        if episode in self._playing:
            _, playing = self._playing.pop(episode)
            playing.cancel()
            await asyncio.wait([playing])
        return {}

    async def close_all(self) -> None:
        """End every episode."""
        for episode in list(self._playing):
            await self.close(episode)

    async def _next(self, episode: str) -> dict[str, Any]:
        conversation, playing = self._playing[episode]
        asked = asyncio.create_task(conversation.observation())
        await asyncio.wait([asked, playing], return_when=asyncio.FIRST_COMPLETED)
        if asked.done():
            return {"messages": asked.result(), "tools": conversation.tools}
        asked.cancel()
        self._playing.pop(episode, None)
        if playing.cancelled():
            raise RuntimeError("the episode was ended from outside")
        return {"result": _result(playing.result(), conversation)}

    async def _complete(self, request: web.Request) -> web.Response:
        body = await request.json()
        if body.get("stream"):
            text = f"this harness streams, which is not served; set its id to {CHAT_HARNESS} in args"
            return web.json_response({"error": {"message": text}}, status=400)
        playing = self._playing.get(body["model"])
        if playing is None:
            return web.json_response({"error": {"message": "the episode is over"}}, status=410)
        try:
            return web.json_response(await playing[0].call(body, request.headers.get(SESSION_ID_HEADER, "")))
        except ValueError as error:
            return web.json_response({"error": {"message": str(error)}}, status=400)

    def _task(self, index: int) -> vf.Task:
        for _ in self._up_to(index + 1):
            pass
        if index >= len(self._tasks):
            raise IndexError(f"there are {len(self._tasks)} tasks, none of index {index}")
        return self._tasks[index]

    def _up_to(self, number: int | None) -> Iterator[vf.Task]:
        """The first tasks, loaded as far as asked for: a taskset may be endless."""
        missing = None if number is None else max(0, number - len(self._tasks))
        self._tasks += itertools.islice(self._source, missing)
        return iter(self._tasks[:number])


@asynccontextmanager
async def opened(name: str, args: Mapping[str, Any]) -> AsyncIterator[Episodes]:
    """The episodes of an environment, which is loaded, and the model's endpoint, while they are played."""
    for variable in ("NO_PROXY", "no_proxy"):  # the model is on this machine
        os.environ[variable] = ",".join(filter(None, [os.environ.get(variable), "127.0.0.1"]))
    episodes = Episodes(load(name, args))
    async with episodes.env.serving():
        endpoint = await episodes.serve()
        try:
            yield episodes
        finally:
            await episodes.close_all()
            await endpoint.cleanup()


def load(name: str, args: Mapping[str, Any]) -> vf.Env:
    """The environment of an installed package (by its id), of ./file.py, or of ./file.py:function."""
    function = ""
    if ".py" in name:
        path, _, function = name.partition(".py:") if ".py:" in name else (name[:-3], "", "")
        folder, name = str(Path(path).resolve().parent), Path(path).name
        sys.path.insert(0, folder)
        # Servers of tools are programs of their own and import the same file.
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [folder, os.environ.get("PYTHONPATH")]))
    if function:
        env: vf.Env = getattr(importlib.import_module(name), function)(**args)
        return env
    raw = {**args, "taskset": {**args.get("taskset", {}), "id": name}}
    fields = vf.env_config_type(name, raw.get("id", "")).model_fields
    for role, default in ((key, field.default) for key, field in fields.items()):
        if isinstance(default, vf.AgentConfig):
            given = dict(raw.get(role, {}))
            if "runtime" not in given and "runtime" not in default.model_fields_set:
                given["runtime"] = {"type": "subprocess"}  # verifiers' own default is a hosted sandbox
            if "harness" not in given and default.harness is None and default_harness_id(name) == "bash":
                given["harness"] = {"id": CHAT_HARNESS}
            raw[role] = given
    return vf.load_environment(vf.resolve_env_config(raw))


def _result(episode: vf.Episode, conversation: Conversation) -> dict[str, Any]:
    """Rewards of the trace that the conversation belongs to.

    Raises:
        RuntimeError: if the episode failed: nothing of it is to be scored.
    """
    errors = [*episode.errors, *(error for trace in episode.traces for error in trace.errors)]
    trace = next((trace for trace in episode.traces if trace.id == conversation.session_id), None)
    if conversation.problem or not episode.ok or trace is None:
        said = [f"{error.type}: {error.message}" for error in errors] or ["the model was never asked"]
        raise RuntimeError(conversation.problem or "; ".join(said))
    unscored = [name for name, reward in trace.rewards.items() if reward is None]
    if unscored:
        raise RuntimeError(f"not scored: {', '.join(unscored)} ({trace.stop_condition})")
    return {
        "reward": trace.reward,
        "parts": {name: reward.value for name, reward in trace.rewards.items()},
        "metrics": {name: value for name, value in trace.metrics.items() if value is not None},
        "stopped_by": trace.stop_condition,
    }
