"""An agent that plays through the endpoint: a user's function, or a program."""

from __future__ import annotations

import asyncio
import copy
import inspect
import io
import json
import os
import signal
import tempfile
import threading
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

from vlrl.errors import ConfigError, VlrlError
from vlrl.foreign.failure import failure_of, finite
from vlrl.parsing.strict_json import Unreadable, strict_json
from vlrl.registry import resolve
from vlrl.rollout.context import numbers
from vlrl.rollout.endpoint.server import MODEL, api_key
from vlrl.types import EnvTask

AGENT = "agent"
"""The name of this environment that is none: the agent brings its own."""
TAIL_BYTES = 16_384
"""Of a program's output, as much as is read from its end."""


class AgentFailure(VlrlError):
    """An agent that gave no result: why, and the traceback or the end of stderr."""

    def __init__(self, reason: str, trace: str = "") -> None:
        super().__init__(f"{reason}\n{trace}".strip())


class Agent(Protocol):
    """An agent that plays tasks through the endpoint."""

    async def play(self, base_url: str, task: Mapping[str, Any], seed: int) -> Any:
        """Play a task with the model behind a base URL; what the agent says of it.

        Raises:
            AgentFailure: if it raises or exits with an error.
        """
        ...


def open_agent(task: EnvTask) -> Agent:
    """The agent that a row names.

    Raises:
        ConfigError: for options that name none.
    """
    options = dict(task.options)
    name, command = options.pop("agent", None), options.pop("command", None)
    if options or (name is None) == (command is None):
        raise ConfigError(
            f"env 'agent': the options {dict(task.options)} must be either agent: ./file.py:function or "
            "command: a list of words"
        )
    if command is not None:
        words = isinstance(command, list | tuple) and all(isinstance(word, str) for word in command)
        if not words or not command:
            raise ConfigError(f"env 'agent': command={command!r} must be a list of words")
        return ProgramAgent(tuple(command))
    function = resolve("agents", str(name))
    if not callable(function):
        raise ConfigError(f"env 'agent': {name!r} is not a function")
    return FunctionAgent(function, str(name))


def read_result(said: Any) -> tuple[float, dict[str, float]]:
    """(reward, numbers to be logged, success among them) of what an agent says of its episode.

    Raises:
        AgentFailure: for anything but a finite number, a mapping with one as "reward", or None.
    """
    found = said if isinstance(said, Mapping) else {"reward": said}
    try:
        reward = found.get("reward")
        return 0.0 if reward is None else finite(reward, "reward"), numbers(
            {str(name): value for name, value in found.items() if name != "reward"}
        )
    except ValueError as error:
        raise AgentFailure(f"its result cannot be read: {error}") from error


@dataclass(frozen=True, slots=True)
class FunctionAgent:
    """A function, plain or async, in a thread of its own: nothing that it does holds up other episodes."""

    function: Callable[..., Any]
    name: str

    async def play(self, base_url: str, task: Mapping[str, Any], seed: int) -> Any:
        """Call it; see `Agent`. When given up, a plain one is left behind: its next request is refused."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        worker = _Worker()
        own = copy.deepcopy(task)  # every episode must find it the same
        arguments = {"base_url": base_url, "api_key": api_key(), "model": MODEL, "task": own, "seed": seed}

        def work() -> None:
            returned, raised = None, None
            try:
                returned = worker.run(lambda: self.function(**arguments))
            except BaseException as error:  # also SystemExit, which would end the thread without a message
                raised = error
            with suppress(RuntimeError):  # the event loop has been closed meanwhile
                loop.call_soon_threadsafe(_settle, future, returned, raised)

        threading.Thread(target=work, name=f"agent {self.name}", daemon=True).start()
        try:
            return await future
        finally:
            worker.cancel()


class _Worker:
    """A call in a thread that has an event loop if it needs one."""

    def __init__(self) -> None:
        self._is_cancelled = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[Any] | None = None

    def run(self, call: Callable[[], Any]) -> Any:
        returned = call()
        return asyncio.run(self._awaited(returned)) if inspect.iscoroutine(returned) else returned

    async def _awaited(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        self._task, self._loop = asyncio.current_task(), asyncio.get_running_loop()
        if self._is_cancelled:  # before there was a loop to be told
            coroutine.close()
            return None
        return await coroutine

    def cancel(self) -> None:
        self._is_cancelled = True
        if self._loop is not None and self._task is not None:
            with suppress(RuntimeError):  # it has ended
                self._loop.call_soon_threadsafe(self._task.cancel)


def _settle(future: asyncio.Future[Any], returned: Any, raised: BaseException | None) -> None:
    if future.done():
        return
    if raised is None:
        future.set_result(returned)
    else:
        # Not in the agent's thread: two that format tracebacks at once may fail (CPython issue 106905).
        found = failure_of(raised)
        future.set_exception(AgentFailure(f"raised {found.reason}", found.trace))


@dataclass(frozen=True, slots=True)
class ProgramAgent:
    """A program, whose last line of output is a JSON object; it and its children are gone afterwards."""

    command: Sequence[str]

    async def play(self, base_url: str, task: Mapping[str, Any], seed: int) -> Any:
        """Run it; see `Agent`."""
        environment = {
            **os.environ,
            "OPENAI_BASE_URL": base_url,
            "OPENAI_API_KEY": api_key(),
            "OPENAI_MODEL": MODEL,
            "VLRL_TASK": json.dumps(dict(task)),
            "VLRL_SEED": str(seed),
        }
        # Files and no pipes: a child that outlives the program would keep a pipe open.
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            try:
                process = await asyncio.create_subprocess_exec(
                    *self.command,
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=out,
                    stderr=err,
                    env=environment,
                    start_new_session=True,
                )
            except OSError as error:
                raise ConfigError(f"env 'agent': {self.command[0]!r} cannot be started: {error}") from error
            try:
                code = await process.wait()
            finally:
                with suppress(ProcessLookupError):  # the group is empty
                    os.killpg(process.pid, signal.SIGKILL)
                await process.wait()
            if code:
                why = f"died of {signal.Signals(-code).name}" if code < 0 else f"exited with code {code}"
                raise AgentFailure(why, _tail(err))
            return _last_object(_tail(out))


def _tail(file: Any) -> str:
    size = file.seek(0, io.SEEK_END)
    file.seek(max(0, size - TAIL_BYTES))
    return str(file.read().decode(errors="replace"))


def _last_object(output: str) -> Mapping[str, Any]:
    line = (output.strip().splitlines() or [""])[-1]
    try:
        value = strict_json(line)
    except Unreadable:
        value = None
    if not isinstance(value, dict):
        wanted = 'a JSON object such as {"reward": 1}'
        raise AgentFailure(f"its last line of output must be {wanted}, not {line!r:.200}")
    return value
