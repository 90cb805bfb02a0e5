"""Downloads, from a real server on this machine through a real socket; only the addresses are made up."""

from __future__ import annotations

import http.server
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from builders import random_image
from PIL import Image

from vlrl.config.data import MediaConfig
from vlrl.errors import DataError
from vlrl.processors.media.download import Downloader
from vlrl.processors.media.sources import Encoded, locate
from vlrl.processors.media.store import MediaStore

PUBLIC = "93.184.215.14"
WHERE = "sample 'x'"


class Handler(http.server.BaseHTTPRequestHandler):
    """/ok, /short, /big, /endless, /slow, /gone, /to?URL; counts what it is asked."""

    asked: list[str]
    body: bytes

    def do_GET(self) -> None:
        self.asked.append(f"{self.headers['Host']}{self.path}")
        name, _, query = self.path.partition("?")
        if name == "/to":
            self.send_response(302)
            self.send_header("Location", query)
            self.end_headers()
        elif name == "/gone":
            self.send_error(404)
        elif name == "/short":
            self.answer(len(self.body) + 1)
            self.wfile.write(self.body)
        elif name == "/big":
            self.answer(1 << 30)
        elif name in ("/endless", "/slow"):
            self.answer(None)
            self.go_on(bytes(1 << 16) if name == "/endless" else b".")
        else:
            self.answer(len(self.body))
            self.wfile.write(self.body)

    def answer(self, length: int | None) -> None:
        self.send_response(200)
        if length is not None:
            self.send_header("Content-Length", str(length))
        self.end_headers()

    def go_on(self, piece: bytes) -> None:
        try:
            while True:
                self.wfile.write(piece)
                time.sleep(0 if len(piece) > 1 else 0.05)
        except OSError:  # the other side has had enough
            return

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def server(tmp_path: Path) -> Iterator[http.server.ThreadingHTTPServer]:
    Image.fromarray(random_image(48, 64)).save(tmp_path / "a.png")
    Handler.asked = []
    Handler.body = (tmp_path / "a.png").read_bytes()
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


class Network:
    """Names and addresses of a made-up internet; every address leads to the test's server."""

    def __init__(self, port: int, **names: list[str]) -> None:
        self.port = port
        self.names = {name.replace("_", "."): addresses for name, addresses in names.items()}
        self.dialled: list[tuple[str, int]] = []

    def resolve(self, host: str, port: int) -> list[str]:
        return self.names.get(host, [PUBLIC])

    def dial(self, address: str, port: int, timeout_s: float) -> socket.socket:
        self.dialled.append((address, port))
        return socket.create_connection(("127.0.0.1", self.port), timeout=timeout_s)


def fetch(url: str, network: Network, hosts: tuple[str, ...] = ("media.example",), **limits: Any) -> bytes:
    config = MediaConfig(allowed_hosts=list(hosts), **limits)
    source = locate(url, config, WHERE)
    assert isinstance(source, Encoded)
    return Downloader(config, network.resolve, network.dial).fetch(source)


def refusal(url: str, network: Network, **options: Any) -> str:
    with pytest.raises(DataError, match=r"^sample 'x': ") as caught:
        fetch(url, network, **options)
    return str(caught.value)


def test_an_allowed_host_is_fetched_at_the_address_that_was_checked(server: Any) -> None:
    network = Network(server.server_port)
    assert fetch("http://media.example/ok?a=b", network) == Handler.body
    assert fetch("HTTP://Media.Example.:8080/ok", network) == Handler.body
    assert Handler.asked == ["media.example/ok?a=b", "media.example:8080/ok"]
    assert network.dialled == [(PUBLIC, 80), (PUBLIC, 8080)]


@pytest.mark.parametrize(
    "url",
    [
        "http://other.example/ok",
        "http://sub.media.example/ok",
        "http://media.example.evil.com/ok",
        "http://media.example@evil.com/ok",
        "http://evil.com#@media.example/ok",
        "http://evil.com\\@media.example/ok",
        "http://user:password@media.example/ok",
        "http:///ok",
        "http://127.0.0.1/ok",
        "http://[::1]/ok",
        "http://media.example/a b",
        "http://media.example:99999/ok",
        "http://media.example/\r\nHost: evil.com",
    ],
)
def test_tricks_with_the_host_reach_nobody(url: str, server: Any) -> None:
    network = Network(server.server_port)
    refusal(url, network)
    assert network.dialled == []


def test_no_host_is_allowed_unless_it_is_named(server: Any) -> None:
    network = Network(server.server_port)
    said = refusal("http://media.example/ok", network, hosts=())
    assert "the host 'media.example' is not in media.allowed_hosts (none); add it" in said


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "10.1.2.3", "192.168.0.1", "172.16.0.1", "169.254.169.254", "0.0.0.0", "100.64.0.1"),
        *("224.0.0.1", "240.0.0.1", "255.255.255.255", "::1", "::", "fe80::1%eth0", "fc00::1", "ff02::1"),
        *("::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::a9fe:a9fe", "2002:7f00:1::"),
    ],
)
def test_a_private_address_is_refused_also_of_an_allowed_host(address: str, server: Any) -> None:
    network = Network(server.server_port, media_example=[PUBLIC, address])
    assert f"has the address {address}, which is not a public one" in refusal(
        "http://media.example/ok", network
    )
    assert network.dialled == []


@pytest.mark.parametrize("address", [PUBLIC, "2606:2800:21f:cb07:6820:80da:af6b:8b2c"])
def test_public_addresses_are_reached(address: str, server: Any) -> None:
    network = Network(server.server_port, media_example=[address])
    assert fetch("http://media.example/ok", network) == Handler.body
    assert network.dialled == [(address, 80)]


def test_a_name_that_resolves_differently_the_second_time_is_resolved_once(server: Any) -> None:
    class Rebinding(Network):
        def resolve(self, host: str, port: int) -> list[str]:
            self.names[host] = ["127.0.0.1"] if host in self.names else [PUBLIC]
            return self.names[host]

    network = Rebinding(server.server_port)
    assert fetch("http://media.example/ok", network) == Handler.body
    assert network.dialled == [(PUBLIC, 80)]


def test_a_redirect_is_judged_like_the_first_address(server: Any) -> None:
    network = Network(server.server_port, inner_example=["10.0.0.1"])
    hosts = ("media.example", "cdn.example", "inner.example")
    assert fetch("http://media.example/to?http://cdn.example/ok", network, hosts) == Handler.body
    assert fetch("http://media.example/to?/ok", network, hosts) == Handler.body
    assert "'evil.com' is not in" in refusal(
        "http://media.example/to?http://evil.com/ok", network, hosts=hosts
    )
    assert "10.0.0.1" in refusal("http://media.example/to?http://inner.example/ok", network, hosts=hosts)
    assert "only plain http" in refusal("http://media.example/to?file:///etc/passwd", network, hosts=hosts)
    assert "redirects more than 3" in refusal("http://media.example/to?/to?/to?/to?/to?/to?/ok", network)


def test_size_and_time_are_limited_while_the_bytes_come(server: Any) -> None:
    network = Network(server.server_port)
    for path in ("/big", "/endless"):
        said = refusal(f"http://media.example{path}", network, max_file_mib=1)
        assert "takes more than media.max_file_mib=1 MiB" in said
    said = refusal("http://media.example/slow", network, timeout_s=0.5)
    assert "took longer than media.timeout_s=0.5" in said


def test_what_the_server_says_is_passed_on(server: Any) -> None:
    network = Network(server.server_port)
    assert "the server says 404" in refusal("http://media.example/gone", network)
    assert "cannot be fetched: IncompleteRead" in refusal("http://media.example/short", network)
    assert "cannot be fetched" in refusal("https://media.example/ok", network)  # it speaks no TLS


def test_a_store_fetches_a_url_once(server: Any, tmp_path: Path) -> None:
    network = Network(server.server_port)
    config = MediaConfig(cache_dir=tmp_path / "cache", allowed_hosts=["media.example"])
    for _ in range(2):
        store = MediaStore(config, Downloader(config, network.resolve, network.dial))
        assert store.image_size("http://media.example/ok", WHERE) == (48, 64)
        assert store.image("http://media.example/ok", (48, 64), WHERE).pixels.shape == (1, 48, 64, 3)
    assert len(Handler.asked) == 1
