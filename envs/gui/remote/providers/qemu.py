"""OSWorld's machines in QEMU, without docker: an overlay over one disk each, thrown away at every revert."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from vlrl.environment.host.failure import EnvFailure
from vlrl.envs.gui.remote.providers.docker import GUEST_PORTS, KVM
from vlrl.envs.gui.remote.providers.provider import disk_at, local_addresses, ports_of, run
from vlrl.errors import ConfigError

QEMU = "qemu-system-x86_64"
POLL_S, KILLED_S = 0.05, 5.0
"""Seconds between two looks, and until a process that was killed has ended."""


class QemuProvider:
    """A process of QEMU for each machine, new for every episode; the disk is only read."""

    def __init__(
        self,
        disk: str,
        num: int = 1,
        first_port: int = 16000,
        memory: str = "4G",
        cores: int = 4,
        kvm: bool = True,
        folder: str | None = None,
        args: Sequence[str] = (),
    ) -> None:
        """Take the options.

        Args:
            disk: file of the machines' disk, in the format qcow2, such as OSWorld's Ubuntu.qcow2.
            num: machines.
            first_port: each machine has four ports of this host, beginning here, on 127.0.0.1 only.
            memory: of each machine.
            cores: of each machine.
            kvm: false emulates the processor, some twenty times slower.
            folder: for overlays, which grow by what a machine writes; null is vlrl-qemu-UID in the folder for
                temporary files.
            args: further arguments of QEMU, such as [-bios, /usr/share/ovmf/OVMF.fd].

        Raises:
            ConfigError: if the disk or /dev/kvm is not there, or /dev/kvm may not be used.
        """
        if kvm and not os.access(KVM, os.R_OK | os.W_OK):
            raise ConfigError(
                f"gui/osworld: provider qemu: {KVM} is not there or may not be used (the group kvm may); set "
                "kvm: false for a much slower machine, or use machines elsewhere with the option urls"
            )
        self._disk, self._first_port, self._kvm = disk_at(disk), first_port, kvm
        self._memory, self._cores, self._args = memory, cores, tuple(args)
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        self._folder = Path(folder or Path(tempfile.gettempdir()) / f"vlrl-qemu-{os.getuid()}").absolute()
        self.addresses = local_addresses(first_port, num)

    def revert(self, index: int, limit_s: float) -> bool:
        """Start the machine from its disk."""
        until = time.monotonic() + limit_s
        self.stop(index, limit_s)
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        overlay = str(self._file(index, "qcow2"))
        made = ["qemu-img", "create", "-q", "-f", "qcow2", "-F", "qcow2", "-b", self._disk, overlay]
        run(made, until - time.monotonic(), "qemu-img")
        with self._file(index, "log").open("wb") as log:
            try:
                # A session of its own: an interrupt is for vlrl, which stops it.
                process = self._processes[index] = subprocess.Popen(
                    self.command(index),
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
            except OSError as error:
                raise ConfigError(f"gui/osworld: provider qemu: {QEMU} cannot be run: {error}") from error
        while not self._ask(index, [], until):
            if process.poll() is not None:
                said = self._file(index, "log").read_text(errors="replace")[-300:]
                raise EnvFailure("died", f"gui/osworld: {QEMU} ended with {process.returncode}: {said}")
            if time.monotonic() > until:
                self.stop(index, 0.0)
                raise EnvFailure("hung", f"gui/osworld: {QEMU} did not start in {limit_s:.3g} s")
            time.sleep(POLL_S)
        return True

    def stop(self, index: int, limit_s: float) -> None:
        """End the machine's process, whoever started it, and remove its overlay."""
        until, pid = time.monotonic() + limit_s, self._pid(index)
        process = self._processes.pop(index, None)
        self._ask(index, ["qmp_capabilities", "quit"], until)
        if pid and not _ends(pid, process, until):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            if not _ends(pid, process, time.monotonic() + KILLED_S):
                raise EnvFailure("hung", f"gui/osworld: {QEMU}, process {pid}, does not end")
        for kind in ("qmp", "pid", "qcow2"):
            self._file(index, kind).unlink(missing_ok=True)

    def command(self, index: int) -> list[str]:
        """What starts a machine."""
        ports = zip(ports_of(self._first_port, index), GUEST_PORTS, strict=True)
        forwards = "".join(f",hostfwd=tcp:127.0.0.1:{host}-:{guest}" for host, guest in ports)
        return [
            *(QEMU, "-m", self._memory, "-smp", str(self._cores), "-display", "none"),
            *(["-enable-kvm", "-cpu", "host"] if self._kvm else []),
            *("-drive", f"file={self._file(index, 'qcow2')},if=virtio,format=qcow2"),
            *("-netdev", f"user,id=net{forwards}", "-device", "virtio-net-pci,netdev=net"),
            *("-qmp", f"unix:{self._file(index, 'qmp')},server=on,wait=off"),
            *("-pidfile", str(self._file(index, "pid"))),
            *self._args,
        ]

    def _ask(self, index: int, commands: Sequence[str], until: float) -> bytes:
        """Give the process commands by its monitor; gives the greeting of one that is ready, else nothing."""
        with socket.socket(socket.AF_UNIX) as monitor, suppress(OSError):
            monitor.settimeout(max(until - time.monotonic(), 0.1))
            monitor.connect(str(self._file(index, "qmp")))
            greeting = monitor.recv(4096)
            for name in commands:
                monitor.sendall(json.dumps({"execute": name}).encode())
            while commands and monitor.recv(4096):
                """Read to its end: then the process is ending."""
            return greeting
        return b""

    def _pid(self, index: int) -> int:
        """The process of the machine; 0 if there is none any more."""
        try:
            pid = int(self._file(index, "pid").read_text())
            is_ours = str(self._file(index, "qcow2")).encode() in Path(f"/proc/{pid}/cmdline").read_bytes()
        except (OSError, ValueError):
            return 0
        return pid if is_ours else 0

    def _file(self, index: int, kind: str) -> Path:
        return self._folder / f"{ports_of(self._first_port, index)[0]}.{kind}"


def _ends(pid: int, process: subprocess.Popen[bytes] | None, until: float) -> bool:
    """Wait until a process, a child or not, has ended."""
    while process.poll() is None if process is not None else Path(f"/proc/{pid}").exists():
        if time.monotonic() > until:
            return False
        time.sleep(POLL_S)
    return True
