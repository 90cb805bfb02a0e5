"""Free ports of this machine, and which of its network interfaces has an address."""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence
from contextlib import suppress
from random import SystemRandom
from typing import Any

import psutil  # type: ignore[import-untyped]

from vlrl.errors import ResourceError


def rendezvous_port(wanted: int | None) -> int:
    """A free port, or the wanted one.

    Below those that the system gives to connections: one that is free now is bound seconds later.

    Raises:
        ResourceError: if the wanted port is in use, or none is free.
    """
    random = SystemRandom()  # independent of the run's seed
    for port in [wanted] if wanted else [random.randrange(20_000, 32_000) for _ in range(100)]:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            with suppress(OSError):
                probe.bind(("", port))
                return port
    raise ResourceError(f"trainer.master_port={wanted} is in use; give another, or null for any")


def interface_of(address: str) -> str | None:
    """The network interface with an IPv4 address; None if this machine has none."""
    interfaces: Mapping[str, Sequence[Any]] = psutil.net_if_addrs()
    for name, addresses in interfaces.items():
        if any(entry.family == socket.AF_INET and entry.address == address for entry in addresses):
            return name
    return None
