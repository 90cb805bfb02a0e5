"""A wheel is read in parts: of vLLM's the Python files alone, without the rest of it."""

from __future__ import annotations

import io
import os
import sys
import threading
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))  # programs, not a package

import remote_zip
import vllm_source


class Server(BaseHTTPRequestHandler):
    """One file, in parts or only whole; counts the bytes that it sends."""

    sent = 0

    def __init__(self, file: bytes, ranges: bool, *arguments: object) -> None:
        self.file, self.ranges = file, ranges
        super().__init__(*arguments)

    def do_GET(self) -> None:
        body = self.file
        if self.ranges:
            first, last = self.headers["Range"].removeprefix("bytes=").split("-")
            body = self.file[int(first) : int(last) + 1]
        self.send_response(206 if self.ranges else 200)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Content-Range", f"bytes 0-0/{len(self.file)}")
        self.end_headers()
        try:
            self.wfile.write(body)
        except ConnectionError:  # nobody reads a whole file here
            return
        Server.sent += len(body)

    def log_message(self, *_: object) -> None:
        pass


Serve = Callable[..., str]


@pytest.fixture(scope="module")
def wheel() -> bytes:
    """Two Python files around 20 MB of a library."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("vllm/__init__.py", "A = 1\n")
        archive.writestr("vllm/_C.so", os.urandom(20 * 2**20))
        archive.writestr("vllm/v1/engine.py", "B = 2\n")
    return file.getvalue()


@pytest.fixture
def serve(wheel: bytes) -> Iterator[Serve]:
    """A function that serves the wheel, and gives its address."""
    servers: list[ThreadingHTTPServer] = []

    def start(*, ranges: bool) -> str:
        Server.sent = 0
        servers.append(ThreadingHTTPServer(("127.0.0.1", 0), partial(Server, wheel, ranges)))
        threading.Thread(target=servers[-1].serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{servers[-1].server_port}/vllm-1-py3-none-any.whl"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def test_only_the_python_files_are_fetched(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VLLM_SOURCES", str(tmp_path))
    url = serve(ranges=True)
    folder = vllm_source.fetch("1.0", url)
    files = {str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file()}
    assert files == {"vllm/__init__.py", "vllm/v1/engine.py"}
    assert (folder / "vllm/v1/engine.py").read_text() == "B = 2\n"
    assert 0 < Server.sent < 4 * 2**20, "the library was not"
    sent = Server.sent
    assert vllm_source.fetch("1.0", url) == folder
    assert Server.sent == sent, "it is there"
    assert [folder.name for folder in tmp_path.iterdir()] == ["1.0"]


def test_a_server_of_whole_files_is_refused(serve: Serve, tmp_path: Path) -> None:
    with pytest.raises(OSError, match="gives whole files only"):
        remote_zip.open_zip(serve(ranges=False))


def test_a_file_here_is_opened_in_place(wheel: bytes, tmp_path: Path) -> None:
    (tmp_path / "a b.whl").write_bytes(wheel)
    with remote_zip.open_zip((tmp_path / "a b.whl").as_uri()) as archive:
        assert archive.read("vllm/v1/engine.py") == b"B = 2\n"
