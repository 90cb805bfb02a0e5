"""Browsers: shared, replaced when they die, and never left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from open_files import left_open, open_files
from processes import descendants

from vlrl.envs.gui.actions import Click, Wait
from vlrl.envs.gui.web.chromium import browser, chrome
from vlrl.envs.gui.web.chromium.pipe import BrowserFailure
from vlrl.envs.gui.web.folder import WebFolder
from vlrl.errors import ConfigError

Open = Callable[..., WebFolder]


def shared() -> browser.Browser:
    return browser.running()[0]


def running(pids: list[int]) -> list[int]:
    alive = []
    for pid in pids:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if state != "Z":
            alive.append(pid)
    return alive


def wait_until(condition: Callable[[], bool]) -> None:
    while not condition():  # the suite's own time limit ends a wait that is in vain
        time.sleep(0.02)


def test_one_browser_serves_all(open_page: Open) -> None:
    web, first = open_page("<p>x</p>"), shared().pid
    other = WebFolder(str(web._folder), size=(320, 240))
    other.reset({}, 0)
    assert shared().pid == first
    other.close()
    other.close()
    web.reset({}, 1)


@pytest.mark.parametrize("phase", ["reset", "step", "verdict", "idle"])
def test_a_killed_browser_is_an_error_and_then_replaced(phase: str, open_page: Open) -> None:
    web = open_page("<button>x</button>")
    pids = descendants(shared().pid)

    def kill() -> None:
        os.kill(pids[-1] if phase == "step" else shared().pid, signal.SIGKILL)
        os.killpg(pids[0], signal.SIGKILL)

    if phase == "idle":
        kill()
        wait_until(lambda: not running(pids))
    else:
        acts = {
            "reset": lambda: web.reset({}, 2),
            "step": lambda: web.perform(Wait(60_000)),
            "verdict": lambda: web.page.evaluate("new Promise(() => {})", isolated=True),
        }
        timer = threading.Timer(0.01, kill)
        timer.start()
        with pytest.raises(BrowserFailure, match=r"the browser|the page"):
            for _ in range(1000):
                acts[phase]()
        timer.join()
        with pytest.raises((BrowserFailure, RuntimeError)):
            web.perform(Click((5, 5)))
    web.reset({}, 3)
    assert web.perform(Click((5, 5))).settled
    wait_until(lambda: not running(pids))


def test_a_page_that_dies_takes_no_other_with_it(open_page: Open, tmp_path: Path) -> None:
    web = open_page("<p>x</p>")
    other = WebFolder(str(tmp_path), size=(320, 240))
    other.reset({}, 0)
    before = shared().pid
    answer = other._browser.pipe.send("Page.crash", {}, other.page._session)  # type: ignore[union-attr]
    with pytest.raises(BrowserFailure, match=r"process died|closed"):
        answer.result(10)
    with pytest.raises(BrowserFailure):
        other.perform(Click((5, 5)))
    assert web.perform(Click((5, 5))).settled
    other.reset({}, 0)
    assert shared().pid == before
    other.close()


def test_a_page_that_hangs_is_reported(open_page: Open) -> None:
    web = open_page("<button onclick='for (;;);'>x</button>", limit_s=1.0)
    with pytest.raises(BrowserFailure, match="within 1 s"):
        web.perform(Click((15, 15)))
    web.close()  # and its process with its context


def test_nothing_is_left_of_a_driver_that_was_killed(tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text("<p>x")
    (tmp_path / "page.task.js").write_text("({goal: '', verdict: () => ({milestones: {x: false}})})")
    code = f"""
        import time
        from vlrl.envs.gui.web.folder import WebFolder
        web = WebFolder({str(tmp_path)!r}, sandbox='warn')
        web.reset({{}}, 0)
        print("ready", flush=True)
        time.sleep(600)
    """
    for box in (True, False):
        bare = (
            "from vlrl.envs.gui.web.chromium import chrome; chrome._why_no_box = lambda: 'a test'\n"
            if not box
            else ""
        )
        with subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", bare + textwrap.dedent(code)], stdout=subprocess.PIPE
        ) as driver:
            assert driver.stdout is not None
            assert driver.stdout.readline() == b"ready\n"
            pids = descendants(driver.pid)
            assert len(pids) > 4
            driver.kill()
        wait_until(lambda pids=pids: not running(pids))  # type: ignore[misc]


@pytest.mark.parametrize("num_resets", [20, pytest.param(200, marks=pytest.mark.slow)])
def test_resets_leave_nothing(num_resets: int, open_page: Open) -> None:
    web = open_page("<script>const big = new Uint8Array(4e6).fill(1)</script><button>x</button>")

    def state() -> tuple[int, int]:
        pids = running(descendants(shared().pid))
        kib = sum(
            int(line.split()[1])
            for pid in pids
            for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
            if line.startswith("Pss:")
        )
        return len(pids), kib // 1024

    for seed in range(6):
        web.reset({}, seed)
    begin, opened, num_threads = state(), open_files(), threading.active_count()
    for seed in range(num_resets):
        web.reset({}, seed)
        web.perform(Click((20, 20)))
    end = state()
    assert end[0] <= begin[0]
    assert left_open(opened) == {}
    assert end[1] - begin[1] < 60, (begin, end)  # MiB: of a leak, every reset would add 4
    assert threading.active_count() <= num_threads


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch, open_page: Open) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(chrome.shutil, "which", lambda name: None)
        with pytest.raises(ConfigError, match="apt-get install chromium-headless-shell"):
            chrome.find_program()
    with monkeypatch.context() as patch:
        patch.setattr(chrome, "_FONTS", {Path("/nowhere"): "fonts-nowhere"})
        with pytest.raises(ConfigError, match="apt-get install fonts-nowhere"):
            chrome.find_program()
    monkeypatch.setattr(chrome, "_why_no_box", lambda: "no namespaces")
    with pytest.raises(ConfigError, match=r"no namespaces.*sandbox=warn"):
        chrome.start("require", 1.0)


def test_an_idle_browser_ends(open_page: Open) -> None:
    web = open_page("<p>x</p>")
    pids = descendants(shared().pid)
    browser.close_idle()
    assert running(pids)
    web.close()
    browser.close_idle()
    wait_until(lambda: not running(pids))
    web.reset({}, 0)


def test_a_browser_of_many_gets_company_up_to_one_a_core(
    open_page: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(browser, "SHARERS", 2)
    monkeypatch.setattr(browser.os, "sched_getaffinity", lambda _: {0, 1})
    webs = [open_page("<p>x</p>")]
    for _ in range(5):
        webs.append(WebFolder(str(webs[0]._folder), size=(320, 240)))
        webs[-1].reset({}, 0)
    assert [each.num_users for each in browser.running()] == [3, 3]
    first = webs[0].show().pixels
    assert all((web.show().pixels == first).all() for web in webs)
    for web in webs[1:]:
        web.close()
    browser.close_idle()
    assert [each.num_users for each in browser.running()] == [1]
