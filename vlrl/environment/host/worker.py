"""The process of an environment: it creates it on request, and answers one call after another.

    python -m vlrl.environment.host.worker, started by `vlrl.environment.host.process`

An async environment has an event loop of its own here, which runs while a call does.
"""

from __future__ import annotations

import asyncio
import inspect
import pickle
import sys
from typing import Any

from vlrl.environment.host.answers import Traits, traits_of
from vlrl.environment.host.calls import Outcome, attempt, perform
from vlrl.environment.host.frames import dumps
from vlrl.environment.open import open_env
from vlrl.foreign.runner import result_of
from vlrl.foreign.worker_process import join_driver, receive, send


class Server:
    """One environment, once it is made."""

    def __init__(self) -> None:
        self._env: Any = None
        self._runner = asyncio.Runner()

    def answer(self, request: bytearray) -> Outcome:
        """Perform what is asked for."""
        asked = attempt(lambda: pickle.loads(request))  # of a stranger's classes in the task
        if isinstance(asked, Exception):
            return asked
        method, arguments = asked
        if method == "open":
            return attempt(lambda: self._open(*arguments))
        return self.call(method, arguments)

    def call(self, method: str, arguments: tuple[Any, ...]) -> Outcome:
        """Call one of the environment's methods."""
        outcome = perform(self._env, method, arguments, copies=False)  # it is sent before the next call
        return result_of(self._runner, outcome) if inspect.iscoroutine(outcome) else outcome

    def close(self) -> None:
        """Close the environment; whether it can be or not, the process ends."""
        if self._env is not None:
            self.call("close", ())
        self._runner.close()

    def _open(self, name: str, options: dict[str, Any]) -> Traits:
        self._env = open_env(name, options)
        return traits_of(self._env)


def main() -> None:
    """Serve until the driver has no more to ask."""
    channel, _ = join_driver()
    send(channel, b"")
    server = Server()
    while (request := receive(channel)) is not None:
        send(channel, *dumps(server.answer(request)))
    server.close()
    sys.exit()


if __name__ == "__main__":
    main()
