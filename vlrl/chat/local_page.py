"""Where a page of this machine is: a socket that only it reaches, and a URL that nobody guesses."""

from __future__ import annotations

import secrets
import socket
from typing import TYPE_CHECKING

from vlrl.errors import ResourceError

if TYPE_CHECKING:
    from aiohttp import web

HOST = "127.0.0.1"
HEADERS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
"""Of every answer."""


class LocalAddress:
    """A page's address; its routes begin with /{token}/.

    Attributes:
        socket: that listens.
        url: of the page, with the secret part.
    """

    def __init__(self, port: int) -> None:
        """Listen; port 0 is any that is free.

        Raises:
            ResourceError: if it is not.
        """
        try:
            self.socket = socket.create_server((HOST, port))
        except OSError as error:
            raise ResourceError(f"port {port} is not available: {error.strerror}; give --port 0") from error
        self._token = secrets.token_urlsafe(24)
        self.url = f"http://{HOST}:{self.socket.getsockname()[1]}/{self._token}/"

    def has_secret(self, request: web.Request) -> bool:
        """Whether a request has the secret part, under this machine's own name: no other site's page does."""
        host = request.headers.get("Host", "").rpartition(":")[0]
        token = request.match_info["token"].encode()
        return secrets.compare_digest(token, self._token.encode()) and host in (HOST, "localhost")
