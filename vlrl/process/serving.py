"""A local page's HTTP server, from the socket that it was given to its end."""

from __future__ import annotations

import asyncio
import socket
from concurrent.futures import Future
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from aiohttp import web

SHUTDOWN_S = 1.0
"""Time for answers that are under way at the end."""


async def serve_until(app: web.Application, listening: socket.socket, stopped: Future[None]) -> None:
    """Serve an application on a socket until a future, which another thread may complete, is done."""
    from aiohttp import web

    runner = web.AppRunner(app, access_log=None, shutdown_timeout=SHUTDOWN_S)
    await runner.setup()
    try:
        await web.SockSite(runner, listening).start()
        await asyncio.wrap_future(stopped)
    finally:
        await runner.cleanup()
