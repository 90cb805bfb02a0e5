"""Two runs in one folder: the second is refused, and told who is there."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from vlrl.errors import ConfigError, ResourceError
from vlrl.run.lock import LOCK_FILE, require_unlocked, run_lock

HOLD = """
import sys, time
from pathlib import Path
from vlrl.run.lock import run_lock
with run_lock(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def holder(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the lock."""
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.wait()


def test_the_second_is_refused_and_told_who_holds_it(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    words = (
        rf"another run is active in .*: process {holder.pid} on {re.escape(socket.gethostname())}, since 2"
    )
    with pytest.raises(ConfigError, match=words), run_lock(tmp_path):
        pass
    with pytest.raises(ConfigError, match=words):
        require_unlocked(tmp_path)
    assert json.loads((tmp_path / LOCK_FILE).read_text())["pid"] == holder.pid


def test_it_ends_with_its_process_however_that_ends(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    told: list[str] = []
    with run_lock(tmp_path, lambda event, text: told.append(text)):
        assert json.loads((tmp_path / LOCK_FILE).read_text())["pid"] == os.getpid()
    assert told == []
    assert (tmp_path / LOCK_FILE).read_text() == ""
    with run_lock(tmp_path):  # and again
        pass


def test_what_is_left_of_another_host_is_said(tmp_path: Path) -> None:
    (tmp_path / LOCK_FILE).write_text(json.dumps({"pid": 7, "host": "elsewhere", "started": "2026-01-02"}))
    told: list[str] = []
    with run_lock(tmp_path, lambda event, text: told.append(f"{event}: {text}")):
        pass
    assert len(told) == 1
    assert told[0].startswith("run_lock_left: process 7 on elsewhere, since 2026-01-02 did not end cleanly")
    assert "nolock, local_lock" in told[0]


def test_a_torn_record_is_no_error(tmp_path: Path) -> None:
    (tmp_path / LOCK_FILE).write_text('{"pid": 7, "ho')
    with run_lock(tmp_path):
        pass


def test_a_file_system_without_locks_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_locks(file: int, how: int) -> None:
        raise OSError(37, "No locks available")

    monkeypatch.setattr("fcntl.flock", no_locks)
    told: list[str] = []
    with run_lock(tmp_path, lambda event, text: told.append(text)):
        pass
    assert told == [f"the file system of {tmp_path} does not support locks: do not start a second run in it"]


def test_a_folder_that_cannot_be_made_is_an_error_with_its_name(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ResourceError, match=r"check run\.dir"), run_lock(tmp_path / "file" / "run"):
        pass


def test_a_folder_without_a_lock_is_free_and_stays_as_it_is(tmp_path: Path) -> None:
    require_unlocked(tmp_path)
    assert list(tmp_path.iterdir()) == []
