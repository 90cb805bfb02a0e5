"""The server behind a conversation: one that is there already, or one that is started for it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from vlrl.chat.conversation import ModelAddress, first_model
from vlrl.engine.api.options import TOKEN_VARIABLE
from vlrl.errors import EngineError

START_LIMIT_S = 900.0
STOP_LIMIT_S = 20.0


@contextmanager
def opened(model: str, serve_options: Sequence[str], tell: Callable[[str], None]) -> Iterator[ModelAddress]:
    """A server of a model for the length of a block.

    Args:
        model: an API's address (http…/v1), or what `vlrl serve` takes.
        serve_options: of `vlrl serve`.
        tell: called with what is waited for.

    Raises:
        ConfigError: if no server is at the address.
        EngineError: if one that is started ends; with the end of its log.
    """
    token = os.environ.get(TOKEN_VARIABLE, "")
    if model.startswith(("http://", "https://")):
        url = model.rstrip("/")
        yield ModelAddress(url, first_model(url, token), token)
        return
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-c", "from vlrl.cli.main import main; main()", "serve", model]
    with TemporaryDirectory(prefix="vlrl-chat-") as folder:
        log = Path(folder) / "serve.log"
        with log.open("wb") as out:
            server = subprocess.Popen(
                [*command, "--port", str(port), *serve_options],
                stdout=out,
                stderr=out,
                start_new_session=True,
            )
        try:
            tell(f"starting a server of {model}")
            _await_health(f"http://127.0.0.1:{port}", server, log)
            url = f"http://127.0.0.1:{port}/v1"
            yield ModelAddress(url, first_model(url, token), token)
        finally:
            _stop(server)


def _await_health(url: str, server: subprocess.Popen[bytes], log: Path) -> None:
    import httpx2

    until = time.monotonic() + START_LIMIT_S
    while server.poll() is None and time.monotonic() < until:
        with suppress(httpx2.HTTPError):
            if httpx2.get(f"{url}/health", trust_env=False).status_code == 200:
                return
        time.sleep(0.3)
    said = log.read_text(errors="replace")[-1500:]
    raise EngineError(f"the server did not start; the end of its log:\n{said}")


def _stop(server: subprocess.Popen[bytes]) -> None:
    """Stop the server and its engine, which are a session of their own."""
    with suppress(ProcessLookupError):
        os.killpg(server.pid, signal.SIGTERM)
    try:
        server.wait(STOP_LIMIT_S)
    except subprocess.TimeoutExpired:
        with suppress(ProcessLookupError):
            os.killpg(server.pid, signal.SIGKILL)
        server.wait()
