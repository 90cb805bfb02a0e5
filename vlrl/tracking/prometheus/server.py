"""The HTTP server of a process' metrics."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
"""The format that every Prometheus reads."""


class MetricsServer:
    """Serves a registry of prometheus-client in a thread.

    Its own server offers OpenMetrics as well, which Prometheus prefers, and there prometheus-client 0.26
    turns the colons of vLLM's names into underscores.

    Attributes:
        port: at which it is served.
    """

    def __init__(self, registry: Any, host: str, port: int) -> None:
        """Start it; port 0 is any free one.

        Raises:
            OSError: if the port is in use.
        """
        from prometheus_client import generate_latest

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                text = generate_latest(registry)
                self.send_response(200)
                self.send_header("Content-Type", CONTENT_TYPE)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *words: object) -> None:
                """Nothing is logged of a request."""

        self._server = ThreadingHTTPServer((host, port), Handler)
        self._server.daemon_threads = True
        self.port = int(self._server.server_port)
        self._thread = threading.Thread(target=self._server.serve_forever, name="metrics", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End it."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
