"""Refuse every connection that would leave this machine, in the tests and in every Python they start.

Python imports a module of this name at start; conftest.py puts its folder on PYTHONPATH for child processes.
"""

import errno
import functools
import ipaddress
import os
import socket


class NetworkUsed(OSError):
    """A test, or a program it started, tried to reach another machine."""

    def __init__(self, what):
        super().__init__(errno.ENETUNREACH, f"tests use no network, and this one tried to reach {what}")


@functools.cache
def is_own_address(host):
    """Loopback, unspecified, or an address of this machine, which is one that a socket can be bound to.

    TEST_HOSTS names the addresses of network namespaces, which are on this machine as well.
    """
    if host in os.environ.get("TEST_HOSTS", "").split(","):
        return True
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host in ("", "localhost", socket.gethostname())
    if address.is_loopback or address.is_unspecified:
        return True
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind((host, 0))
        except OSError:
            return False
    return True


def text(host):
    return host.decode() if isinstance(host, bytes) else str(host or "")


def guard_connection(method):
    @functools.wraps(method)
    def guarded(self, *arguments):
        address = arguments[-1]
        inet = self.family in (socket.AF_INET, socket.AF_INET6)
        if inet and isinstance(address, tuple) and not is_own_address(text(address[0])):
            raise NetworkUsed(f"{address[0]} port {address[1]}")
        return method(self, *arguments)

    return guarded


def guard_lookup(lookup):
    @functools.wraps(lookup)
    def guarded(host, *arguments, **options):
        try:
            ipaddress.ip_address(text(host).partition("%")[0])  # a literal address asks nobody
        except ValueError:
            if not is_own_address(text(host)):
                raise NetworkUsed(f"a name server, for {text(host)}") from None
        return lookup(host, *arguments, **options)

    return guarded


def block():
    """Guard the socket module; harmless when called twice."""
    if getattr(socket.socket.connect, "__wrapped__", None) is not None:
        return
    for name in ("connect", "connect_ex", "sendto"):
        setattr(socket.socket, name, guard_connection(getattr(socket.socket, name)))
    for name in ("getaddrinfo", "gethostbyname", "gethostbyname_ex"):
        setattr(socket, name, guard_lookup(getattr(socket, name)))


block()
