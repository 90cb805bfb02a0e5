"""The environment of packages that cannot live beside vlrl's own: `make ecosystem-env` makes it."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]
PYTHON = ROOT / ".venv-ecosystem" / "bin" / "python"


def python() -> str:
    """Its interpreter."""
    assert PYTHON.exists(), f"{PYTHON} is missing: run make ecosystem-env"
    return str(PYTHON)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def server(file: Path, *arguments: object) -> Iterator[str]:
    """Run a server's file on a free port; gives its address once it listens, and ends it afterwards."""
    port = free_port()
    command = [python(), "-P", str(file), str(port), *map(str, arguments)]
    with subprocess.Popen(
        command, env=dict(os.environ, HF_HUB_OFFLINE="1"), stderr=subprocess.PIPE
    ) as process:
        try:
            while True:
                assert process.poll() is None, f"{file.name} ended with {process.returncode}"
                with socket.socket() as probe:
                    if probe.connect_ex(("127.0.0.1", port)) == 0:
                        break
                time.sleep(0.05)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.kill()
