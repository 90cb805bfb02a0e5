"""What starts and reverts OSWorld's machines: QEMU itself, docker's commands, a class of one's own."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ecosystem import free_port
from gui_servers import OSWorld
from machine_tasks import QUICK, SIZE, TASK, say

from vlrl.environment.host.failure import EnvFailure
from vlrl.envs.gui import actions as a
from vlrl.envs.gui.remote.osworld import OSWorldEnv
from vlrl.envs.gui.remote.providers import qemu
from vlrl.envs.gui.remote.providers.qemu import QemuProvider
from vlrl.errors import ConfigError

RECORDS = """#!{python}
import json, sys
with open({log!r}, "a") as file:
    file.write(json.dumps(sys.argv[1:]) + "\\n")
sys.exit("no such image" if {fails} and sys.argv[1] == "run" else 0)
"""
OWN = """
class Mine:
    def __init__(self, url, log):
        self.addresses, self.log = [url], log
    def note(self, *what):
        with open(self.log, "a") as file:
            print(*what, file=file)
    def revert(self, index, limit_s):
        self.note("revert", index)
        return False
    def stop(self, index, limit_s):
        self.note("stop", index)
"""


@pytest.fixture
def osworld(tmp_path: Path) -> Iterator[OSWorld]:
    machine = OSWorld(tmp_path / "machine")
    with machine.server:
        yield machine


@pytest.fixture
def disk(tmp_path: Path) -> str:
    path = str(tmp_path / "disk.qcow2")
    subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", path, "64M"], check=True)
    return path


def desktop(**options: Any) -> OSWorldEnv:
    return OSWorldEnv(**{"size": SIZE, "settle_s": 0.0, "deadlines": QUICK, **options})


def with_docker(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, fails: bool = False) -> Path:
    """Have a docker first on the PATH that notes what it is asked for."""
    log, program = tmp_path / "asked", tmp_path / "bin" / "docker"
    program.parent.mkdir()
    program.write_text(RECORDS.format(python=sys.executable, log=str(log), fails=fails))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    return log


def test_docker_has_a_new_container_for_each_episode(
    osworld: OSWorld, disk: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = with_docker(monkeypatch, tmp_path)
    port = osworld.server.server_address[1]
    options = {"disk": disk, "first_port": port, "args": ["--cpus=2"]}
    env = desktop(provider={"name": "docker", "options": options})
    env.reset(TASK, 0)
    assert say(env, a.Finish()).reward == 1.0
    env.close()
    name = f"vlrl-osworld-{port}"
    removed, started, removed_again = (json.loads(line) for line in log.read_text().splitlines())
    assert removed == removed_again == ["rm", "--force", "--volumes", name]
    assert started[:4] == ["run", "--detach", "--rm", f"--name={name}"] and started[-1] == (
        "happysixd/osworld-docker"
    )
    has_kvm = Path("/dev/kvm").exists()
    assert ("--device=/dev/kvm" in started, "--env=KVM=N" in started) == (has_kvm, not has_kvm)
    guests = enumerate((5000, 9222, 8006, 8080))
    published = [f"--publish=127.0.0.1:{port + number}:{guest}" for number, guest in guests]
    assert {*published, f"--volume={disk}:/System.qcow2:ro", "--cpus=2"} <= {*started}


def test_docker_that_fails_is_no_result(disk: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_docker(monkeypatch, tmp_path, fails=True)
    env = desktop(provider={"name": "docker", "options": {"disk": disk}})
    with pytest.raises(EnvFailure, match=r"docker failed \(1\): .*no such image"):
        env.reset(TASK, 0)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigError, match="docker cannot be run"):
        env.reset(TASK, 0)


@pytest.fixture
def machines(disk: str, tmp_path: Path) -> Iterator[QemuProvider]:
    given = {"memory": "32M", "cores": 1, "kvm": False, "folder": str(tmp_path / "vm")}
    machines = QemuProvider(disk, num=2, first_port=free_port(), **given)  # type: ignore[arg-type]
    yield machines
    machines.stop(1, 10.0)


def test_qemu_starts_from_the_disk_and_ends(machines: QemuProvider, tmp_path: Path, disk: str) -> None:
    assert machines.revert(1, 20.0) is True
    pid = int((tmp_path / "vm" / f"{_port(machines)}.pid").read_text())
    with socket.create_connection(("127.0.0.1", _port(machines)), timeout=5):
        """The server's port is forwarded."""
    overlay = tmp_path / "vm" / f"{_port(machines)}.qcow2"
    found = json.loads(subprocess.check_output(["qemu-img", "info", "-U", "--output=json", str(overlay)]))
    assert found["backing-filename"] == disk
    made = overlay.stat().st_mtime_ns
    machines.revert(1, 20.0)
    assert not _runs(pid) and overlay.stat().st_mtime_ns > made
    machines.stop(1, 10.0)
    machines.stop(1, 10.0)
    assert [path.suffix for path in (tmp_path / "vm").iterdir()] == [".log"]
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", _port(machines)), timeout=5)


def test_qemu_ends_what_another_process_left(machines: QemuProvider, tmp_path: Path) -> None:
    machines.revert(1, 20.0)
    pid = int((tmp_path / "vm" / f"{_port(machines)}.pid").read_text())
    left = subprocess.Popen(["tail", "-f", "/dev/null"])  # whoever has the number by now
    os.kill(pid, signal.SIGSTOP)  # it does not answer its monitor
    machines.stop(1, 0.2)
    assert not _runs(pid)
    (tmp_path / "vm" / f"{_port(machines)}.pid").write_text(str(left.pid))
    machines.stop(1, 0.2)
    assert left.poll() is None, "no process of others is ended"
    left.kill()
    left.wait()


def test_qemu_that_does_not_start_says_why(
    machines: QemuProvider, disk: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", _port(machines)))
        taken.listen()
        with pytest.raises(EnvFailure, match=r"ended with 1: .*Could not set up host forwarding"):
            machines.revert(1, 20.0)
    monkeypatch.setattr(qemu, "KVM", tmp_path / "kvm")
    with pytest.raises(ConfigError, match=r"kvm is not there or may not be used .*kvm: false"):
        QemuProvider(disk)
    with pytest.raises(ConfigError, match=r"disk='none' is not there"):
        QemuProvider("none", kvm=False)
    monkeypatch.setattr(qemu, "QEMU", "no-such-qemu")
    with pytest.raises(ConfigError, match="no-such-qemu cannot be run"):
        machines.revert(1, 20.0)
    assert shutil.which("qemu-img")


def test_a_provider_of_ones_own(osworld: OSWorld, tmp_path: Path) -> None:
    file, log = tmp_path / "mine.py", tmp_path / "log"
    file.write_text(OWN)
    options = {"url": osworld.server.url, "log": str(log)}
    env = desktop(provider={"name": f"{file}:Mine", "options": options})
    for _ in range(2):
        env.reset(TASK, 0)
    assert say(env, a.Finish()).reward == 1.0
    env.close()
    assert log.read_text().splitlines() == ["revert 0", "stop 0"] * 2


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({}, "give urls .* or a provider"),
        ({"urls": ["http://a"], "provider": {"name": "docker"}}, "either a provider, or urls"),
        ({"provider": {"options": {}}}, "give name"),
        ({"provider": {"name": "dokcer"}}, "no provider is named 'dokcer'; did you mean 'docker'"),
    ],
)
def test_options_that_say_no_machines(options: Any, match: str) -> None:
    with pytest.raises(ConfigError, match=match):
        desktop(**options)


def _port(machines: QemuProvider) -> int:
    return int(machines.addresses[1].split(":")[1])


def _runs(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()
