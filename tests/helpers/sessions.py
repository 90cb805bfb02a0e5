"""A `vlrl` in a session of its own, and every process that it started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from uuid import uuid4

MARKER = "VLRL_TEST_MARKER"
START_S, END_S = 240.0, 60.0


class Session:
    """A command as a terminal starts it; every process under it carries a marker."""

    def __init__(self, folder: Path, *arguments: str, env: Mapping[str, str] | None = None) -> None:
        self.folder, self.marker = folder, uuid4().hex
        self.log = (folder / "log").open("w+")
        self.process = subprocess.Popen(
            [sys.executable, "-c", "from vlrl.cli.main import main; main()", *arguments],
            start_new_session=True, cwd=folder, stdout=self.log, stderr=subprocess.STDOUT,
            env={**os.environ, **(env or {}), MARKER: self.marker},
        )  # fmt: skip

    def wait_until(self, condition: Callable[[], bool], limit_s: float = START_S) -> None:
        """Poll, and fail with the run's own words if it ends first."""
        deadline = time.monotonic() + limit_s
        while not condition():
            assert self.process.poll() is None, self.text()
            assert time.monotonic() < deadline, self.text()
            time.sleep(0.02)

    def press_ctrl_c(self) -> None:
        """A terminal sends SIGINT to the whole foreground group, Ray's processes included."""
        os.killpg(self.process.pid, signal.SIGINT)

    def end(self, timeout_s: float = END_S, *, gone_s: float = 60.0) -> int:
        """Exit code, once the program and everything it started have gone."""
        code = self.process.wait(timeout_s)
        deadline = time.monotonic() + gone_s
        while (left := self.processes()) and time.monotonic() < deadline:
            time.sleep(0.1)
        assert left == {}, f"left behind: {left}"
        if code != -signal.SIGKILL:  # then nobody was there to remove it; the next run does
            assert list(Path("/dev/shm").glob(f"vlrl-*{self.process.pid}*")) == []
        return code

    def processes(self) -> dict[int, str]:
        """The command line of every living process that carries the marker, by its number."""
        found = {}
        for entry in Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and self.marker.encode() in (entry / "environ").read_bytes():
                    words = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                    found[int(entry.name)] = words[:200]
            except OSError:
                continue  # gone, or a zombie
        return found

    def text(self) -> str:
        """What it printed."""
        return (self.folder / "log").read_text()

    def kill(self) -> None:
        """Leave nothing behind of a test that failed."""
        self.log.close()
        for pid in self.processes():
            os.kill(pid, signal.SIGKILL)
        self.process.wait()
