"""OSWorld's machines in docker, as its own provider starts them, in the image happysixd/osworld-docker."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from vlrl.envs.gui.remote.providers.provider import disk_at, local_addresses, ports_of, run

GUEST_PORTS = (5000, 9222, 8006, 8080)
"""In the container: server, Chrome, VNC, VLC."""
KVM = Path("/dev/kvm")


class DockerProvider:
    """A container for each machine, new for every episode; the disk is only read."""

    def __init__(
        self,
        disk: str,
        num: int = 1,
        first_port: int = 15000,
        image: str = "happysixd/osworld-docker",
        memory: str = "4G",
        cores: int = 4,
        args: Sequence[str] = (),
    ) -> None:
        """Take the options.

        Args:
            disk: file of the machines' disk, such as OSWorld's Ubuntu.qcow2.
            num: machines.
            first_port: each machine has four ports of this host, beginning here, on 127.0.0.1 only.
            image: of docker.
            memory: of each machine.
            cores: of each machine.
            args: further arguments of docker run.

        Raises:
            ConfigError: if the disk is not there.
        """
        self._disk, self._first_port, self._image = disk_at(disk), first_port, image
        self._memory, self._cores, self._args = memory, cores, tuple(args)
        self.addresses = local_addresses(first_port, num)

    def revert(self, index: int, limit_s: float) -> bool:
        """Replace the machine's container by a new one."""
        self.stop(index, limit_s)
        run(self.command(index), limit_s, "docker")
        return True

    def stop(self, index: int, limit_s: float) -> None:
        """Remove the machine's container, if there is one."""
        run(["docker", "rm", "--force", "--volumes", self._name(index)], limit_s, "docker")

    def command(self, index: int) -> list[str]:
        """What starts a machine."""
        published = [
            f"--publish=127.0.0.1:{host}:{guest}"
            for host, guest in zip(ports_of(self._first_port, index), GUEST_PORTS, strict=True)
        ]
        return [
            *("docker", "run", "--detach", "--rm", f"--name={self._name(index)}", "--cap-add=NET_ADMIN"),
            *(["--device=/dev/kvm"] if KVM.exists() else ["--env=KVM=N"]),
            *("--env=DISK_SIZE=32G", f"--env=RAM_SIZE={self._memory}", f"--env=CPU_CORES={self._cores}"),
            f"--volume={self._disk}:/System.qcow2:ro",
            *published,
            *self._args,
            self._image,
        ]

    def _name(self, index: int) -> str:
        """Told by its port, so that what a killed process left is found and removed."""
        return f"vlrl-osworld-{ports_of(self._first_port, index)[0]}"
