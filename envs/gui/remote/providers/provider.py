"""What starts, reverts and stops machines, and the simplest: machines that are there, and a command."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from vlrl.environment.host.failure import EnvFailure
from vlrl.errors import ConfigError

PORTS_EACH = 4
"""A machine's ports are for its server, Chrome, VNC and VLC, in OSWorld's order."""


class Provider(Protocol):
    """Machines that are alike. Only who has taken a machine, in whatever process, calls for it.

    Attributes:
        addresses: of each, as the option urls of gui/osworld has them; they stay the same.
    """

    addresses: Sequence[str]

    def revert(self, index: int, limit_s: float) -> bool:
        """Have a machine as it was at first; what ran at its address before is gone.

        Args:
            index: place in addresses.
            limit_s: longest time.

        Returns:
            Whether it starts now, so that it does not answer yet.

        Raises:
            ConfigError: if it cannot be done on this host.
            EnvFailure: if it fails.
        """

    def stop(self, index: int, limit_s: float) -> None:
        """End a machine that is not needed any more; safe to call twice. Raises EnvFailure if it fails."""


class CommandProvider:
    """Machines that run already, and a command on this host that puts one back."""

    def __init__(self, addresses: Sequence[str], command: Sequence[str]) -> None:
        """Take the command: {index} in it is the machine's place in addresses; empty for none."""
        self.addresses, self._command = addresses, command

    def revert(self, index: int, limit_s: float) -> bool:
        """Run the command. Raises as `Provider.revert` does."""
        if self._command:
            run([part.replace("{index}", str(index)) for part in self._command], limit_s, "revert")
        return bool(self._command)

    def stop(self, index: int, limit_s: float) -> None:
        """Leave it running."""


def run(argv: Sequence[str], limit_s: float, what: str) -> None:
    """Run a command to its end.

    Raises:
        ConfigError: if there is no such program.
        EnvFailure: if it fails or takes too long.
    """
    limit_s = max(limit_s, 0.1)
    try:
        subprocess.run(argv, check=True, capture_output=True, timeout=limit_s, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired as error:
        raise EnvFailure("hung", f"gui/osworld: {what} took longer than {limit_s:.3g} s: {argv}") from error
    except subprocess.CalledProcessError as error:
        said = error.stderr[-300:].decode(errors="replace")
        raise EnvFailure(
            "raised", f"gui/osworld: {what} failed ({error.returncode}): {argv}: {said}"
        ) from error
    except OSError as error:
        raise ConfigError(f"gui/osworld: {what} cannot be run: {error}") from error


def ports_of(first_port: int, index: int) -> tuple[int, int, int, int]:
    """A machine's ports for its server, Chrome, VNC and VLC."""
    first = first_port + PORTS_EACH * index
    return first, first + 1, first + 2, first + 3


def local_addresses(first_port: int, num: int) -> list[str]:
    """The addresses of machines on this host, in OSWorld's words."""
    return [":".join(["127.0.0.1", *map(str, ports_of(first_port, index))]) for index in range(num)]


def disk_at(path: str) -> str:
    """A disk's absolute path. Raises ConfigError if there is no such file."""
    if not Path(path).is_file():
        raise ConfigError(
            f"gui/osworld: disk={path!r} is not there (looked in {Path.cwd()}); OSWorld's is Ubuntu.qcow2 of "
            "its data set xlangai/ubuntu_osworld, unpacked"
        )
    return str(Path(path).absolute())
