"""A page in Debian's headless browser, used as a person uses it: by mouse, wheel and keys."""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

import httpx2
from websockets.sync.client import connect

PATIENCE_S = 30.0


class BrowserPage:
    """One page of one browser; a context manager."""

    def __init__(self, url: str, folder: Path, size: tuple[int, int] = (1400, 900)) -> None:
        width, height = size
        self._process = subprocess.Popen(
            [
                *("chromium-headless-shell", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0"),
                *(f"--user-data-dir={folder}", f"--window-size={width},{height}", "about:blank"),
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        told, end = folder / "DevToolsActivePort", time.monotonic() + PATIENCE_S
        while not (told.exists() and told.read_text().count("\n")):
            assert self._process.poll() is None and time.monotonic() < end, "the browser does not start"
            time.sleep(0.02)
        port = told.read_text().split()[0]
        targets = httpx2.get(f"http://127.0.0.1:{port}/json/list", timeout=PATIENCE_S).json()
        page = next(target for target in targets if target["type"] == "page")
        self._stack = ExitStack()
        address = page["webSocketDebuggerUrl"]
        self._socket = self._stack.enter_context(connect(address, max_size=None, open_timeout=PATIENCE_S))
        self._count = 0
        self.errors: list[str] = []
        self.call("Runtime.enable")
        self.call("Page.navigate", url=url)

    def call(self, method: str, **params: Any) -> Any:
        """A command of the browser's protocol."""
        self._count += 1
        self._socket.send(json.dumps({"id": self._count, "method": method, "params": params}))
        while True:
            message = json.loads(self._socket.recv(timeout=PATIENCE_S))
            if message.get("method") == "Runtime.exceptionThrown":
                self.errors.append(json.dumps(message["params"]))
            if message.get("id") == self._count:
                assert "error" not in message, message
                return message["result"]

    def value(self, script: str) -> Any:
        """What an expression comes to in the page."""
        result = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def until(self, script: str) -> Any:
        """Wait until an expression is true."""
        end = time.monotonic() + PATIENCE_S
        while not (found := self.value(script)):
            assert time.monotonic() < end, f"never true: {script}; {self.errors}"
            time.sleep(0.02)
        return found

    def mouse(self, kind: str, x: float, y: float, **params: Any) -> None:
        """An event of the mouse: mousePressed, mouseReleased, mouseMoved or mouseWheel."""
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **params)

    def click(self, x: float, y: float, button: str = "left", count: int = 1, modifiers: int = 0) -> None:
        """Press and release, so many times."""
        for number in range(1, count + 1):
            for kind in ("mousePressed", "mouseReleased"):
                self.mouse(kind, x, y, button=button, clickCount=number, modifiers=modifiers)

    def key(self, key: str, text: str = "", modifiers: int = 0) -> None:
        """Press and release a key; modifiers are 1 alt, 2 ctrl, 4 meta, 8 shift."""
        down = {"type": "keyDown", "text": text} if text else {"type": "rawKeyDown"}
        self.call("Input.dispatchKeyEvent", key=key, modifiers=modifiers, **down)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key, modifiers=modifiers)

    def screenshot(self, path: Path) -> None:
        """What the page looks like."""
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()
        os.killpg(self._process.pid, signal.SIGKILL)  # with the processes that it started
        self._process.wait()
