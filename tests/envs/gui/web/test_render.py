"""Documents of a model, rendered: what is seen; no page escapes, hangs or takes the browser along."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import psutil
import pytest

from vlrl.envs.gui.web.chromium import browser
from vlrl.envs.gui.web.render import MAX_HTML_BYTES, MAX_TEXT, Rendered, render

SIZE = (320, 240)
RED, GREEN = (255, 0, 0), (0, 128, 0)
# What is there before the attack has to be there after it: the attack's result is what follows.
PAGE = "<!DOCTYPE html><body style='margin:0;background:green'>calm %s</body>"


def shown(html: str, size: tuple[int, int] = SIZE, limit_s: float = 5.0) -> Rendered:
    found = render(html, size, limit_s)
    assert found is not None
    return found


def corner(page: Rendered) -> tuple[int, ...]:
    return tuple(page.pixels[-1, -1].tolist())


@pytest.fixture
def asked() -> Iterator[tuple[str, list[str]]]:
    """A server on this machine: its address, and the paths that anybody asked it for."""
    paths: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            paths.append(self.path)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"<body style='background:red'>")

        do_POST = do_GET

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", paths
    server.shutdown()
    server.server_close()


def test_a_page_is_seen_and_read() -> None:
    html = (
        "<style>body{margin:0;background:red}p{display:none}</style><h1>Two  words</h1><p>hidden</p>"
        "<script>document.body.append('by script')</script>"
    )
    page, again = shown(html), shown(html)
    assert page.pixels.shape == (240, 320, 3) and corner(page) == RED
    assert page.text.split() == ["Two", "words", "by", "script"]
    assert np.array_equal(page.pixels, again.pixels)


@pytest.mark.parametrize(
    "html", ["", "text", "<body", "\0\ud800<p>x", "<frameset>", "<svg xmlns='http://www.w3.org/2000/svg'/>",
             "<script>document.documentElement.remove()</script>"],
    ids=repr,
)  # fmt: skip
def test_whatever_is_written_is_some_page(html: str) -> None:
    assert shown(html).pixels.shape == (240, 320, 3)


def test_size_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    tall = shown("<body style='margin:0'><div style='height:6000px;background:red'>", (640, 6000))
    assert tall.pixels.shape == (6000, 640, 3) and corner(tall) == RED
    for size in ((31, 100), (100, 9000), (8192, 8192)):
        with pytest.raises(ValueError, match="cannot be rendered"):
            render("", size, 5.0)
    assert render("x" * (MAX_HTML_BYTES + 1), SIZE, 5.0) is None
    long = "<script>document.body.innerText = 'x'.repeat(5e5)</script>"
    assert len(shown(f"<body>{long}").text) == MAX_TEXT
    # A screenshot of a page has no scroll bars.
    huge = shown("<body style='margin:0;background:red'><div style='width:1e9px;height:1e9px'>")
    assert huge.pixels.shape == (240, 320, 3) and corner(huge) == RED


@pytest.mark.parametrize(
    "attack",
    [
        "<img src={url}/img><link rel=stylesheet href={url}/css><script src={url}/js></script>",
        "<iframe src={url}/frame style='position:fixed;inset:0;width:100%;height:100%'></iframe>",
        "<object data={url}/object width=9></object><embed src={url}/embed width=9>",
        "<script>fetch('{url}/fetch').then(() => document.body.style.background = 'red')</script>",
        "<script>new WebSocket('{url}/ws'.replace('http', 'ws')); new EventSource('{url}/es')</script>",
        "<script>navigator.sendBeacon('{url}/beacon', 'x'); new Worker('{url}/worker')</script>",
        "<meta http-equiv=refresh content='0;url={url}/refresh'>",
        "<script>location = '{url}/location'</script>",
        "<script>open('{url}/window')</script>",
        "<form id=f method=post action={url}/form></form><script>f.submit()</script>",
    ],
)
def test_nothing_is_fetched_and_nowhere_is_gone(attack: str, asked: tuple[str, list[str]]) -> None:
    url, paths = asked
    page = shown(PAGE % attack.replace("{url}", url))
    assert corner(page) == GREEN and page.text.strip() == "calm"
    assert paths == []


@pytest.mark.parametrize(
    "attack",
    [
        "<iframe src='file://{file}' style='position:fixed;inset:0;width:100%;height:100%'></iframe>",
        "<iframe src='view-source:file://{file}'></iframe><img src='file://{file}'>",
        "<script>location = 'file://{file}'</script>",
        "<meta http-equiv=refresh content='0;url=file://{file}'>",
        "<script>fetch('file://{file}').then(r => r.text()).then(t => document.body.innerText = t)</script>",
        "<script>location = 'chrome://version'</script>",
        "<iframe src='/.blank' width=9></iframe><iframe src='/../{file}' width=9></iframe>",
    ],
)
def test_no_file_is_shown(attack: str, tmp_path: Path) -> None:
    secret = tmp_path / "secret.html"
    secret.write_text("<body style='background:red'>secret")
    page = shown(PAGE % attack.replace("{file}", str(secret)))
    assert corner(page) == GREEN and "secret" not in page.text


RESTLESS = {
    "meta refresh": "<meta http-equiv=refresh content=0>",
    "reload": "<script>location.reload()</script>",
    "reload for ever": "<script>setInterval(() => location.reload(), 0)</script>",
    "frames": "<iframe srcdoc='<script>location.reload()</script>' width=9></iframe><iframe src width=9>",
    "alerts": "<script>alert(1); confirm(2); prompt(3)</script>",
    "print": "<script>print()</script>",
    "before it is left": "<script>onbeforeunload = () => 'stay'; location = '/x'</script>",
    "timers": "<script>setInterval(() => { document.title += 'x' }, 0)</script>",
    "history": "<script>for (let i = 0; i < 9999; i++) history.pushState(0, '', '#' + i)</script>",
    "windows": "<script>for (let i = 0; i < 20; i++) open('about:blank')</script>",
    "closing": "<script>window.close()</script>",
    "never still": "<style>@keyframes k{to{opacity:.9}} i{animation:k .1s infinite}</style><i>.</i>",
}


@pytest.mark.parametrize("attack", RESTLESS)
def test_a_restless_page_is_shown_all_the_same(attack: str) -> None:
    page = shown(PAGE % RESTLESS[attack])
    assert corner(page) == GREEN and page.text.startswith("calm")


ENDLESS = {
    "a loop": "<script>for (;;);</script>",
    "later": "<script>setTimeout(() => { for (;;); }, 20)</script>",
    "promises": "<script>(async () => { for (;;) await 0; })()</script>",
    "while it is drawn": "<script>new ResizeObserver(() => { for (;;); }).observe(document.body)</script>",
    "growing": "<script>for (let s = [];;) s.push(new Array(1e5).fill(s.length))</script>",
    "blobs": """<script>const go = () => { location = URL.createObjectURL(
        new Blob([document.documentElement.outerHTML], {type: 'text/html'})) }; go()</script>""",
}


@pytest.mark.parametrize("attack", ENDLESS)
def test_an_endless_page_ends(attack: str) -> None:
    page = render(PAGE % ENDLESS[attack], SIZE, 3.0)
    assert page is None or attack in ("later", "promises", "while it is drawn", "blobs")
    assert corner(shown(PAGE % "")) == GREEN  # the next page is none the worse
    for shared in browser.running():  # nothing of it computes on
        for process in psutil.Process(shared.pid).children(recursive=True):
            with suppress(psutil.NoSuchProcess):
                if "--type=renderer" in process.cmdline():
                    process.wait(10)
