"""An HTTP server for tests that answers by a function, and fails where it is told to."""

from __future__ import annotations

import http.client
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal, NamedTuple, Self
from urllib.parse import parse_qs, urlsplit

Fault = Literal["drop", "500", "slow", "lost", "cut", "half", "trickle"]
"""Before it acts: drops the connection; says 500; waits 2 s. After it has acted: says nothing; breaks off in
the middle; gives half of the body as if it were all; sends a byte now and then."""


class Asked(NamedTuple):
    method: str
    path: str
    query: dict[str, str]
    headers: Any
    body: bytes


class HttpReply(NamedTuple):
    status: int
    kind: str
    body: bytes
    headers: tuple[tuple[str, str], ...] = ()


class FaultyServer(ThreadingHTTPServer):
    """Each fault is for the next request whose path begins so; `acted` lists what was truly done."""

    daemon_threads = True

    def __init__(self, answer: Callable[[Asked], HttpReply]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answer, self.acted = answer, list[Asked]()
        self.faults: list[tuple[str, Fault]] = []
        self.url = f"http://127.0.0.1:{self.server_address[1]}"

    def __enter__(self) -> Self:
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()

    def handle_error(self, *_: Any) -> None:
        """Clients that gave up are meant to."""

    def fault(self, path: str) -> Fault | None:
        for index, (prefix, kind) in enumerate(self.faults):
            if path.startswith(prefix):
                del self.faults[index]
                return kind
        return None

    def count(self, path: str) -> int:
        return sum(asked.path.startswith(path) for asked in self.acted)


def proxy(upstream: Callable[[], str]) -> FaultyServer:
    """Proxy in front of another server, whose address may change."""

    def forward(asked: Asked) -> HttpReply:
        connection = http.client.HTTPConnection(urlsplit(upstream()).netloc, timeout=10)
        kept = {k: v for k, v in asked.headers.items() if k.lower() not in ("host", "connection")}
        connection.request(asked.method, asked.path, asked.body, kept)
        response = connection.getresponse()
        body = response.read()
        connection.close()
        instance = response.headers.get("Vlrl-Instance", "")
        return HttpReply(
            response.status, response.headers.get_content_type(), body, (("Vlrl-Instance", instance),)
        )

    return FaultyServer(forward)


class _Handler(BaseHTTPRequestHandler):
    server: FaultyServer
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # or every answer waits 40 ms for an acknowledgement

    def _serve(self) -> None:
        parts = urlsplit(self.path)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        fault = self.server.fault(parts.path)
        if fault == "drop":
            self.close_connection = True
            return
        if fault == "slow":
            time.sleep(2)
        query = {key: values[0] for key, values in parse_qs(parts.query).items()}
        asked = Asked(self.command, parts.path, query, self.headers, body)
        if fault == "500":
            self._send(HttpReply(500, "text/plain", b"out of order"), None)
            return
        self.server.acted.append(asked)
        self._send(self.server.answer(asked), fault)

    def _send(self, said: HttpReply, fault: Fault | None) -> None:
        self.close_connection = fault is not None
        body = said.body[: len(said.body) // 2] if fault == "half" else said.body
        if fault == "lost":
            return
        self.send_response(said.status)
        self.send_header("Content-Type", said.kind)
        for name, value in said.headers:
            self.send_header(name, value)
        if said.status != 204:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if fault == "cut":
            self.wfile.write(body[: len(body) // 2])
        elif fault == "trickle":
            for index in range(20):
                self.wfile.write(body[index : index + 1])
                self.wfile.flush()
                time.sleep(0.1)
        else:
            self.wfile.write(body)

    do_GET = do_POST = do_PUT = do_DELETE = _serve

    def log_message(self, *_: Any) -> None:
        """Says nothing."""
