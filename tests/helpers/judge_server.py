"""A real HTTP server on this machine that speaks /v1/chat/completions, and fails on demand."""

from __future__ import annotations

import json
import select
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Reply:
    """What the server does with one request; by default it answers with a score of 5."""

    content: str | None = '{"reason": "fine", "score": 5}'
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes | None = None  # in place of a chat completion
    message: dict[str, Any] = field(default_factory=dict)
    hold: bool = False  # say nothing until the client hangs up
    stall: bool = False  # send half of the body, then nothing until the client hangs up
    cut: bool = False  # hang up without an answer
    usage: dict[str, Any] | None = field(
        default_factory=lambda: {"prompt_tokens": 100, "completion_tokens": 20}
    )

    def payload(self) -> bytes:
        if self.body is not None:
            return self.body
        message = {"role": "assistant", "content": self.content, **self.message}
        return json.dumps({"choices": [{"index": 0, "message": message}], "usage": self.usage}).encode()


@dataclass
class Seen:
    """One request as it came."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    time_s: float

    @property
    def system(self) -> str:
        content: str = self.body["messages"][0]["content"]
        return content

    @property
    def parts(self) -> list[dict[str, Any]]:
        content = self.body["messages"][-1]["content"]
        return [{"type": "text", "text": content}] if isinstance(content, str) else content

    @property
    def text(self) -> str:
        """The last part of the user's message: rubric, question, answers."""
        text: str = self.parts[-1]["text"]
        return text


class JudgeServer:
    """Replies from `script` first, then from `answer`; remembers what it saw."""

    def __init__(self) -> None:
        self.seen: list[Seen] = []
        self.script: deque[Reply] = deque()
        self.answer: Callable[[Seen], Reply] = lambda seen: Reply()
        self.lock = threading.Lock()
        self.changed = threading.Condition(self.lock)
        self.in_flight = self.most_in_flight = self.num_hung_up = self.num_open = 0
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def setup(self) -> None:
                super().setup()
                server._count(num_open=1)

            def finish(self) -> None:
                super().finish()
                server._count(num_open=-1)

            def do_POST(self) -> None:
                server._serve(self)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 128

            def handle_error(self, request: Any, client_address: Any) -> None:
                pass  # clients hang up on purpose here

        self._httpd = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._httpd.server_port}/v1"

    @contextmanager
    def running(self) -> Iterator[JudgeServer]:
        thread = threading.Thread(target=self._httpd.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield self
        finally:
            self._httpd.shutdown()
            self._httpd.server_close()
            thread.join()

    def wait_for(self, condition: Callable[[], bool]) -> bool:
        """True as soon as a condition on this server's counters holds; False after 20 seconds."""
        with self.changed:
            return self.changed.wait_for(condition, timeout=20)

    def _count(self, **changes: int) -> None:
        with self.changed:
            for name, change in changes.items():
                setattr(self, name, getattr(self, name) + change)
            self.most_in_flight = max(self.most_in_flight, self.in_flight)
            self.changed.notify_all()

    def _serve(self, handler: BaseHTTPRequestHandler) -> None:
        body = json.loads(handler.rfile.read(int(handler.headers["content-length"])))
        headers = {name.lower(): value for name, value in handler.headers.items()}
        seen = Seen(handler.path, headers, body, time.monotonic())
        with self.changed:
            self.seen.append(seen)
            reply = self.script.popleft() if self.script else None
        self._count(in_flight=1)
        try:
            self._send(handler, reply or self.answer(seen))
        finally:
            self._count(in_flight=-1)

    def _send(self, handler: BaseHTTPRequestHandler, reply: Reply) -> None:
        handler.close_connection = reply.hold or reply.stall or reply.cut
        if reply.cut:
            handler.connection.shutdown(socket.SHUT_RDWR)
            return
        if not reply.hold:
            payload = reply.payload()
            handler.send_response(reply.status)
            for name, value in reply.headers.items():
                handler.send_header(name, value)
            handler.send_header("content-length", str(len(payload)))
            handler.end_headers()
            handler.wfile.write(payload[: len(payload) // 2] if reply.stall else payload)
            handler.wfile.flush()
        if reply.hold or reply.stall:
            select.select([handler.connection], [], [], 20)
            if handler.connection.recv(1, socket.MSG_PEEK) == b"":
                self._count(num_hung_up=1)
