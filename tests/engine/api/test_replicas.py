"""Two replicas on Ray Serve: a server or its actor is killed, or both are replaced, and no request is lost.

The servers are small programs; that a vLLM server answers as it should is test_serve's.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from vlrl.engine.api.replicas import ServerCommand, serve_replicas, stop_replicas

pytestmark = pytest.mark.slow(together=True)

PROGRAM = Path(__file__).parents[2] / "helpers" / "numbered_server.py"


def command(name: str) -> ServerCommand:
    return ServerCommand([sys.executable, str(PROGRAM), "--name", name], timeout_s=30.0)


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    import ray

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    ray.init("local", num_cpus=4, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    try:
        serve_replicas(command("first"), num_replicas=2, host="127.0.0.1", port=port)
        yield f"http://127.0.0.1:{port}"
        stop_replicas()
    finally:
        ray.shutdown()


async def load(address: str, seconds: float, disturb: Callable[[], None], **body: Any) -> list[Any]:
    """Answers of eight clients that ask without pause; `disturb` is called in a thread after a second."""
    loop = asyncio.get_running_loop()
    end, answers = loop.time() + seconds, []

    async def client(number: int) -> None:
        async with httpx2.AsyncClient(timeout=120.0, trust_env=False) as session:
            while loop.time() < end:
                sent = {"number": number, **body}
                answers.append(await session.post(f"{address}/v1/chat/completions", json=sent))

    async def trouble() -> None:
        await asyncio.sleep(1.0)
        await asyncio.to_thread(disturb)

    await asyncio.gather(*(client(number) for number in range(8)), trouble())
    return answers


def pids(address: str) -> set[int]:
    answers = asyncio.run(load(address, 3.0, lambda: None))
    return {answer.json()["pid"] for answer in answers}


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


@pytest.mark.parametrize("whose", ["server", "actor"])
def test_a_replica_is_killed_under_load_and_no_request_is_lost(address: str, whose: str) -> None:
    known = sorted(pids(address))
    assert len(known) == 2
    victim = known[0] if whose == "server" else parent_of(known[0])
    answers = asyncio.run(load(address, 6.0, lambda: os.kill(victim, signal.SIGKILL)))
    assert Counter(answer.status_code for answer in answers) == {200: len(answers)}
    assert len(answers) > 40
    for _ in range(60):  # another has taken the dead one's place
        if len(now := pids(address)) == 2:
            break
    assert known[1] in now and known[0] not in now


def test_a_stream_comes_whole(address: str) -> None:
    [answer, *_] = asyncio.run(load(address, 1.5, lambda: None, stream=True))
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert answer.text.count("data: ") == 3


def test_other_weights_replace_the_first_and_no_request_is_lost(address: str) -> None:
    port = int(address.rpartition(":")[2])
    names = Counter[str]()

    def roll() -> None:
        serve_replicas(command("second"), num_replicas=2, host="127.0.0.1", port=port)

    answers = asyncio.run(load(address, 15.0, roll))
    assert Counter(answer.status_code for answer in answers) == {200: len(answers)}
    names.update(answer.json()["name"] for answer in answers)
    assert set(names) == {"first", "second"}
    after = asyncio.run(load(address, 1.5, lambda: None))
    assert {answer.json()["name"] for answer in after} == {"second"}
