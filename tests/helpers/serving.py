"""`vlrl env serve` in a thread of the test's own process, and an environment with a conscience."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from vlrl.environment.serve.server import EnvServer, ServeOptions
from vlrl.protocols import Observation, StepResult

TOKEN = "a-token-of-tests"
COUNTING = f"{Path(__file__).resolve()}:Counting"


class Counting:
    """Counts its steps, and says in an image and a text how many.

    Actions: "raise", "sleep"; anything else counts.
    """

    system_prompt = "Count."

    def __init__(self, name: str = "") -> None:
        self.name, self._canvases = name, ""

    def reset(self, task: Mapping[str, Any], seed: int) -> Observation:
        if task.get("raise"):
            raise RuntimeError("no world today")
        self.count = 0
        return self._shown()

    def seen(self, canvases: Any) -> None:
        self._canvases = repr(tuple(canvases))

    def step(self, action: str) -> StepResult:
        if action == "raise":
            raise RuntimeError("broke")
        if action == "sleep":
            time.sleep(1.0)
        self.count += 1
        return StepResult(
            self._shown(), 0.1 * self.count, action == "end", False, {"canvases": self._canvases}
        )

    def close(self) -> None:
        """Nothing to free."""

    def _shown(self) -> Observation:
        return Observation(f"{self.name}{self.count}", [np.full((6, 8, 3), self.count, np.uint8)])


@contextmanager
def serving(
    name: str = COUNTING,
    options: Mapping[str, Any] | None = None,
    *,
    host: str = "127.0.0.1",
    token: str = TOKEN,
    **settings: Any,
) -> Iterator[str]:
    """The server's address."""
    ready, address = threading.Event(), list[str]()
    loop, stop = asyncio.new_event_loop(), asyncio.Event()
    failed: list[BaseException] = []

    async def serve() -> None:
        server = EnvServer(ServeOptions(name, options or {}, token, **settings))
        async with server.open(host, 0) as url:
            address.append(url)
            ready.set()
            await stop.wait()

    def run() -> None:
        try:
            loop.run_until_complete(serve())
        except BaseException as error:
            failed.append(error)
        finally:
            loop.close()
            ready.set()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    assert ready.wait(30)
    if failed:
        raise failed[0]
    try:
        yield address[0]
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(10)
        if failed:
            raise failed[0]
