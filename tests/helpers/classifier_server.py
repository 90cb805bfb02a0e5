"""A reward model served as `vlrl reward serve` does: vLLM's own server in a process of its own."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx2
import pytest

START_LIMIT_S = 300.0
OPTIONS = ("--dtype", "float32", "--max-model-len", "512", "--enforce-eager")


@contextmanager
def serving(folder: Path, log: Path) -> Iterator[str]:
    """The base URL of a server of that model, whose name there is rm."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [
        sys.executable,
        "-c",
        "from vlrl.cli.main import main; main()",
        "reward",
        "serve",
        str(folder),
        "--port",
        str(port),
    ]
    with log.open("wb") as out:
        server = subprocess.Popen(
            [*command, "--", "--served-model-name", "rm", *OPTIONS],
            stdout=out,
            stderr=out,
            start_new_session=True,
            env={**os.environ, "VLLM_CPU_KVCACHE_SPACE": "1", "HF_HUB_OFFLINE": "1"},
        )
    try:
        await_health(f"http://127.0.0.1:{port}", server, log)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        with suppress(ProcessLookupError):
            os.killpg(server.pid, signal.SIGTERM)
        try:
            server.wait(30)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(server.pid, signal.SIGKILL)


def await_health(
    url: str, server: subprocess.Popen[bytes], log: Path, limit_s: float = START_LIMIT_S
) -> None:
    """Wait until the server answers; fail with its log if it ends or takes too long."""
    until = time.monotonic() + limit_s
    while server.poll() is None and time.monotonic() < until:
        with suppress(httpx2.RequestError):
            if httpx2.get(f"{url}/health", trust_env=False).status_code == 200:
                return
        time.sleep(0.5)
    pytest.fail(f"the server did not start: {log.read_text(errors='replace')[-3000:]}")
