"""Servers that listen beyond this machine: only with a secret that their clients have to know."""

from __future__ import annotations

import ipaddress
import socket

from vlrl.errors import ConfigError

MIN_SECRET_CHARS = 16


def is_loopback(host: str) -> bool:
    """True of an address, or name, that only this machine reaches."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:  # a name
        return host == "localhost"


def require_secret(host: str, secret: str, remedy: str) -> None:
    """See that a server which others reach has a secret.

    Args:
        host: that it listens on.
        secret: of its clients.
        remedy: what to set, and where.

    Raises:
        ConfigError: if it has none, or a short one.
    """
    if not is_loopback(host) and len(secret) < MIN_SECRET_CHARS:
        raise ConfigError(
            f"listening on {host} lets other machines in: {remedy} (at least {MIN_SECRET_CHARS} characters)"
        )


def reached_at(host: str) -> str:
    """The name in URLs of a server that listens on a host: of every address, this machine's name."""
    name = socket.gethostname() if host in ("0.0.0.0", "::") else host
    return f"[{name}]" if ":" in name else name
