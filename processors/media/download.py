"""Fetch a URL for a dataset row: only from allowed hosts, never from a private address, never too much.

The name is resolved once, the address checked, and the connection made to that very address, so that a name
server cannot answer differently the second time (DNS rebinding). Every redirect starts over.
"""

from __future__ import annotations

import http.client
import ipaddress
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from urllib.parse import SplitResult, urljoin, urlsplit

from vlrl.config.data import MediaConfig
from vlrl.errors import DataError
from vlrl.processors.media.sources import MIB, Encoded

MAX_REDIRECTS = 3

Resolve = Callable[[str, int], Sequence[str]]
"""(host, port) → its addresses."""
Dial = Callable[[str, int, float], socket.socket]
"""(address, port, timeout in seconds) → a connection."""


def system_resolve(host: str, port: int) -> list[str]:
    """Ask the system's resolver."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(address[0]) for _, _, _, _, address in found]


def system_dial(address: str, port: int, timeout_s: float) -> socket.socket:
    """Connect by TCP."""
    return socket.create_connection((address, port), timeout=timeout_s)


class Downloader:
    """Fetches what MediaConfig allows. `resolve` and `dial` are how it reaches the network."""

    def __init__(
        self, config: MediaConfig, resolve: Resolve = system_resolve, dial: Dial = system_dial
    ) -> None:
        self._hosts = {host.lower().rstrip(".") for host in config.allowed_hosts}
        self._timeout_s = config.timeout_s
        self._resolve = resolve
        self._dial = dial

    def fetch(self, source: Encoded) -> bytes:
        """The bytes behind source.url.

        Raises:
            DataError: for a host that is not allowed or has a private address, for more bytes than
                source.max_bytes, for more time than media.timeout_s, and for whatever the network says.
        """
        deadline = time.monotonic() + self._timeout_s
        url = source.url or ""
        for _ in range(MAX_REDIRECTS + 1):
            try:
                found = self._get(url, source, deadline)
            except (OSError, http.client.HTTPException, ValueError) as error:
                if time.monotonic() >= deadline:
                    raise DataError(
                        f"{source.name} took longer than media.timeout_s={self._timeout_s:g}; download it "
                        "beforehand, or raise the limit"
                    ) from error
                what = str(error) or type(error).__name__
                raise DataError(
                    f"{source.name} cannot be fetched: {what}; try again, or drop the row"
                ) from error
            if isinstance(found, bytes):
                return found
            url = found
        raise DataError(f"{source.name} redirects more than {MAX_REDIRECTS} times; give its last address")

    def _get(self, url: str, source: Encoded, deadline: float) -> bytes | str:
        """The body, or where the server redirects to."""
        parts, port = self._allowed(url, source)
        with self._connect(parts, port, source, deadline) as connection:
            target = parts.path or "/"
            headers = {"Accept-Encoding": "identity", "User-Agent": "vlrl", "Connection": "close"}
            connection.request("GET", f"{target}?{parts.query}" if parts.query else target, headers=headers)
            with connection.getresponse() as response:
                if response.status in (301, 302, 303, 307, 308):
                    return urljoin(url, response.headers.get("Location", ""))
                if response.status != 200:
                    raise DataError(
                        f"{source.name}: the server says {response.status} {response.reason}; check the URL"
                    )
                return _body(response, source, deadline)

    def _allowed(self, url: str, source: Encoded) -> tuple[SplitResult, int]:
        parts = urlsplit(url)
        host = (parts.hostname or "").rstrip(".")
        if parts.scheme not in ("http", "https") or parts.username is not None or parts.password is not None:
            raise DataError(
                f"{source.name}: only plain http and https URLs are fetched, without a user's name"
            )
        if host not in self._hosts:
            allowed = ", ".join(sorted(self._hosts)) or "none"
            raise DataError(
                f"{source.name}: the host {host!r} is not in media.allowed_hosts ({allowed}); add it, or "
                "download the file"
            )
        if any(ord(character) <= 32 or ord(character) == 127 for character in url):
            raise DataError(f"{source.name}: a URL holds no spaces or control characters; write them as %20")
        return parts, parts.port or (443 if parts.scheme == "https" else 80)

    @contextmanager
    def _connect(
        self, parts: SplitResult, port: int, source: Encoded, deadline: float
    ) -> Iterator[http.client.HTTPConnection]:
        host = (parts.hostname or "").rstrip(".")
        addresses = self._resolve(host, port)
        # One private address among public ones is already a trick.
        for address in addresses:
            if not _is_public(address):
                raise DataError(
                    f"{source.name}: {host} has the address {address}, which is not a public one; media are "
                    "never fetched from there, give a file"
                )
        if not addresses:
            raise DataError(f"{source.name}: {host} has no address; check the URL")
        timeout_s = max(deadline - time.monotonic(), 0.001)
        connection = http.client.HTTPConnection(host, port, timeout=timeout_s)
        connection.sock = self._dial(addresses[0], port, timeout_s)
        # A server that sends a byte now and then never runs into the socket's own time limit. The copy can
        # still be shut when the connection has handed its socket on.
        copy = connection.sock.dup()
        alarm = threading.Timer(max(deadline - time.monotonic(), 0.0), _shut, [copy])
        alarm.start()
        try:
            if parts.scheme == "https":
                context = ssl.create_default_context()
                connection.sock = context.wrap_socket(connection.sock, server_hostname=host)
            yield connection
        finally:
            alarm.cancel()
            connection.close()
            copy.close()


def _is_public(address: str) -> bool:
    """Not private, loopback, link-local, reserved or multicast, nor one of these inside an IPv6 address."""
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address):
        inner = ip.ipv4_mapped or ip.sixtofour or (ip.teredo[1] if ip.teredo else None)
        if inner is not None:
            ip = inner
        elif ip in ipaddress.IPv6Network("64:ff9b::/96"):  # NAT64
            ip = ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
    return ip.is_global and not ip.is_multicast


def _body(response: http.client.HTTPResponse, source: Encoded, deadline: float) -> bytes:
    claimed = response.headers.get("Content-Length", "")
    if response.headers.get("Content-Encoding", "identity") != "identity":
        raise DataError(
            f"{source.name}: the server sends a compressed answer, which is not read; download the file"
        )
    length = int(claimed) if claimed.isdigit() else None
    pieces, total = [], 0
    while max(length or 0, total) <= source.max_bytes and (piece := response.read(MIB)):
        pieces.append(piece)
        total += len(piece)
    if max(length or 0, total) > source.max_bytes:
        raise DataError(
            f"{source.name} takes more than media.max_file_mib={source.max_bytes / MIB:g} MiB; raise the "
            "limit, or drop the row"
        )
    if length is not None and total < length:
        raise http.client.IncompleteRead(b"", length - total)
    if time.monotonic() >= deadline:  # then the connection was shut, and the end is not the file's
        raise TimeoutError
    return b"".join(pieces)


def _shut(connection: socket.socket) -> None:
    with suppress(OSError):  # closed meanwhile
        connection.shutdown(socket.SHUT_RDWR)
