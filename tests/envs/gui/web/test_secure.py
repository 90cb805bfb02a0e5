"""What a page on the real web has, a secure context with its interfaces; and the default of the walls."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from processes import descendants

from vlrl.envs.gui.actions import Click, Key, TypeText
from vlrl.envs.gui.web.chromium import browser, chrome
from vlrl.envs.gui.web.env import MiniWobEnv, WebEnv
from vlrl.envs.gui.web.folder import WebFolder
from vlrl.envs.gui.x11.env import X11Env
from vlrl.errors import ConfigError

Open = Callable[..., WebFolder]


def test_the_context_is_secure(open_page: Open) -> None:
    web = open_page("<p>x</p>")
    assert web.page.evaluate("[isSecureContext, 'caches' in window, 'locks' in navigator]") == [True] * 3
    digest = """crypto.subtle.digest("SHA-256", new TextEncoder().encode("abc")).then(
        (bytes) => Array.from(new Uint8Array(bytes).slice(0, 4)))"""
    assert web.page.evaluate(digest) == [0xBA, 0x78, 0x16, 0xBF]  # FIPS 180-4's example


def test_its_chance_is_of_the_seed(open_page: Open) -> None:
    web = open_page("<p>x</p>")
    first = web.page.evaluate("[crypto.randomUUID(), crypto.randomUUID()]")
    web.reset({}, 0)
    assert web.page.evaluate("[crypto.randomUUID(), crypto.randomUUID()]") == first
    assert first[0] != first[1] and first[0][14] == "4" and len(first[0]) == 36
    web.reset({}, 1)
    assert web.page.evaluate("crypto.randomUUID()") != first[0]


def test_the_clipboards_interface_is_of_the_pages_own(
    open_page: Open, tmp_path_factory: pytest.TempPathFactory
) -> None:
    web = open_page("<input id=a autofocus style='position:fixed;left:0;top:0'>")
    web.perform(Click((20, 10)))
    for action in (TypeText("secret"), Key(("ctrl", "a")), Key(("ctrl", "c"))):
        web.perform(action)
    assert web.page.evaluate("navigator.clipboard.readText()") == "secret"
    web.page.evaluate("navigator.clipboard.write([new ClipboardItem({'text/plain': 'told'})])")
    web.perform(Key(("ctrl", "v")))
    assert web.page.evaluate("a.value") == "told"
    folder = tmp_path_factory.mktemp("other")
    (folder / "page.html").write_text("<!DOCTYPE html>")
    (folder / "page.task.js").write_text("({goal: '', verdict: () => ({milestones: {x: false}})})")
    other = WebFolder(str(folder), size=(320, 240))
    other.reset({}, 0)
    assert other.page.evaluate("navigator.clipboard.readText()") == ""
    other.close()
    web.reset({}, 0)
    assert web.page.evaluate("navigator.clipboard.readText()") == ""


def test_a_sandbox_is_the_default_everywhere(
    open_page: Open, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert inspect.signature(X11Env).parameters["sandbox"].default == "require"
    web: list[Any] = [MiniWobEnv(), WebEnv(str(root / "examples" / "web_tasks"))]
    assert [env.backend._sandbox for env in web] == ["require", "require"]
    browser.close_idle()
    monkeypatch.setattr(chrome, "_why_no_box", lambda: "this test is without")
    with pytest.raises(ConfigError, match="sandbox=warn"):
        open_page("<p>x</p>")


def test_what_the_browser_writes_is_bounded(open_page: Open) -> None:
    """A page's stores are files in memory; so are the things that it shares with its browser."""
    open_page("<p>x</p>")
    inside = descendants(browser.running()[0].pid)
    root = next(pid for pid in inside if Path(f"/proc/{pid}/root/tmp/home").is_dir())
    mounts = [line.split() for line in Path(f"/proc/{root}/mountinfo").read_text().splitlines()]
    writable = [
        fields[4]
        for fields in mounts
        if " tmpfs " in f" {' '.join(fields)} " and "rw" in fields[5].split(",")
    ]
    assert writable
    for folder in writable:
        found = os.statvfs(f"/proc/{root}/root{folder}")
        assert found.f_blocks * found.f_frsize <= 1 << 30, folder
