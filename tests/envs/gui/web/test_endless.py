"""Pages that compute for ever: the next reset gets a new one, and others do not wait for them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from vlrl.envs.gui.actions import Click
from vlrl.envs.gui.web import backend
from vlrl.envs.gui.web.chromium import browser
from vlrl.envs.gui.web.chromium.pipe import BrowserFailure
from vlrl.envs.gui.web.folder import WebFolder

TASK = "({goal: '', verdict: () => ({milestones: {x: false}})})"
BUTTON = "position:fixed;left:0;top:0;width:99px;height:99px"
LOOPS = {
    "in a handler": f"<button style='{BUTTON}' onclick='for (;;);'>x</button>",
    "in a timer": f"<button style='{BUTTON}' onclick='setTimeout(() => {{ for (;;); }}, 20)'>x</button>",
    "in a promise": f"<button style='{BUTTON}' onclick='(async () => {{ for (;;) await 0; }})()'>x</button>",
    "when it is drawn": f"""<button style='{BUTTON}' id=b onclick='
        new ResizeObserver(() => {{ for (;;); }}).observe(document.body)'>x</button>""",
}


@pytest.fixture
def open_folder(tmp_path: Path) -> Iterator[Callable[..., WebFolder]]:
    for name, html in {
        **LOOPS,
        "at once": "<script>for (;;);</script>",
        "calm": "<button>x</button>",
    }.items():
        (tmp_path / f"{name}.html").write_text(f"<!DOCTYPE html>{html}")
        (tmp_path / f"{name}.task.js").write_text(TASK)
    opened: list[WebFolder] = []

    def open_folder(limit_s: float) -> WebFolder:
        opened.append(WebFolder(str(tmp_path), size=(320, 240), limit_s=limit_s))
        return opened[-1]

    yield open_folder
    for web in opened:
        web.close()


def renderers() -> set[int]:
    """Processes of pages."""
    found = set()
    for shared in browser.running():
        for process in psutil.Process(shared.pid).children(recursive=True):
            with suppress(psutil.NoSuchProcess):  # it ended meanwhile
                if "--type=renderer" in process.cmdline():
                    found.add(process.pid)
    return found


@pytest.mark.parametrize("loop", LOOPS)
def test_the_next_episode_is_played(loop: str, open_folder: Callable[..., WebFolder]) -> None:
    web = open_folder(limit_s=2.0)
    web.reset({"name": loop}, 0)
    before = renderers()
    with pytest.raises(BrowserFailure, match="did not answer"):
        web.perform(Click((15, 15)))
    web.reset({"name": "calm"}, 0)
    assert web.perform(Click((15, 15))).settled
    assert not before & renderers()  # and nothing computes on


def test_a_page_that_never_loads(open_folder: Callable[..., WebFolder]) -> None:
    web = open_folder(limit_s=2.0)
    for _ in range(2):
        with pytest.raises(BrowserFailure, match="did not"):
            web.reset({"name": "at once"}, 0)
    web.reset({"name": "calm"}, 0)
    assert web.perform(Click((15, 15))).settled


@pytest.mark.parametrize("loop", LOOPS)
def test_others_go_on_meanwhile(loop: str, open_folder: Callable[..., WebFolder]) -> None:
    stuck, other = open_folder(limit_s=30.0), open_folder(limit_s=12.0)
    stuck.reset({"name": loop}, 0)
    other.reset({"name": "calm"}, 0)
    failed: list[BrowserFailure] = []

    def hang() -> None:
        try:
            stuck.perform(Click((15, 15)))
        except BrowserFailure as failure:
            failed.append(failure)

    thread = threading.Thread(target=hang)
    thread.start()
    for _ in range(20):
        assert other.perform(Click((15, 15))).settled
    assert thread.is_alive() or loop == "when it is drawn"  # they did not wait until it was given up
    browser.running()[0].close()  # rather than to wait, too
    thread.join()
    assert len(failed) == 1


def test_who_shares_the_browser_of_an_overdue_page_is_said(
    open_folder: Callable[..., WebFolder], monkeypatch: pytest.MonkeyPatch
) -> None:
    """256 pages at once in one browser: none of them answered, and nothing said why."""
    monkeypatch.setattr(backend, "CROWD", 1)
    open_folder(30.0).reset({"name": "calm"}, 0)
    remedy = "1 other environments share this process's browser: lower episodes.max_episodes"
    with pytest.raises(BrowserFailure, match=remedy):
        open_folder(1.5).reset({"name": "at once"}, 0)
