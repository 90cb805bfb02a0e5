"""The gate: what a page may load, and what it may not."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from vlrl.envs.gui.web.chromium.gate import BLANK, ORIGIN, Gate


@pytest.fixture
def gate(tmp_path: Path) -> Gate:
    inside = tmp_path / "site"
    (inside / "deep").mkdir(parents=True)
    (inside / "a b.html").write_text("page")
    (inside / "deep" / "x.js").write_text("1")
    (inside / "t.task.js").write_text("secret")
    (inside / ".hidden").write_text("secret")
    (tmp_path / "outside.txt").write_text("secret")
    (inside / "link.txt").symlink_to(tmp_path / "outside.txt")
    return Gate(inside, lambda path: path.name.endswith(".task.js"))


def ask(gate: Gate, url: str, method: str = "GET") -> str | None:
    command, reply = gate.answer({"url": url, "method": method})
    if command == "Fetch.failRequest" or reply["responseCode"] != 200:
        return None
    return base64.b64decode(reply["body"]).decode()


def test_files_are_served(gate: Gate) -> None:
    assert ask(gate, f"{ORIGIN}/a%20b.html?x=1#y") == "page"
    assert ask(gate, f"{ORIGIN}/deep/x.js") == "1"
    assert ask(gate, BLANK) is not None


@pytest.mark.parametrize(
    "path",
    [
        *(
            "t.task.js",
            "link.txt",
            "../outside.txt",
            "%2e%2e/outside.txt",
            "deep/../../outside.txt",
            ".hidden",
        ),
        *("deep", "", "nothing", "a%00b", "//etc/passwd", "deep/..%2f..%2foutside.txt", "%2Fetc%2Fpasswd"),
    ],
)
def test_nothing_else_is(gate: Gate, path: str) -> None:
    assert ask(gate, f"{ORIGIN}/{path}") is None


@pytest.mark.parametrize(
    "url",
    [
        *(
            "https://task.invalid.evil.com/a",
            "https://task.invalid:443@evil/a",
            "http://task.invalid/a%20b.html",
        ),
        *("file:///etc/passwd", "http://127.0.0.1/", "ftp://x/", "https://task.invalid:81/a%20b.html"),
    ],
)
def test_no_other_place_is_reached(gate: Gate, url: str) -> None:
    assert gate.answer({"url": url, "method": "GET"})[0] == "Fetch.failRequest"


def test_nothing_is_sent(gate: Gate) -> None:
    assert ask(gate, f"{ORIGIN}/a%20b.html", "POST") is None
