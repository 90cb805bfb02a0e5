"""A process's browsers, shared by its environments: started when needed, renewed when they died."""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Mapping
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

from vlrl.envs.gui.web.chromium.chrome import Sandbox, start
from vlrl.envs.gui.web.chromium.pipe import BrowserFailure, Deadline, Pipe

IDLE_S = 20.0
"""How long a browser is kept that no environment uses: environments of episodes in threads come and go."""
START_LIMIT_S = 60.0
MOST_CONTEXTS = 2000
"""A browser that has served so many is renewed when nobody uses it."""
SHARERS = 4
"""Environments that share a browser before another one of their scale is started, up to one a core."""


class Browser:
    """A browser process. Its methods may be called from any thread."""

    def __init__(self, sandbox: Sandbox, scale: float) -> None:
        """Start it, to draw `scale` pixels to a CSS pixel.

        Raises:
            ConfigError: if it is not installed; see `vlrl.envs.gui.web.chromium.chrome.start`.
            BrowserFailure: if it does not start.
        """
        self._process, commands, answers, self._folder = start(sandbox, scale)
        self.num_users = self.num_contexts = 0
        self.drawing = threading.Lock()
        self._lock = threading.Lock()
        self._targets: dict[str, Future[str]] = {}
        self.pipe = Pipe(commands, answers, self._death_message)
        self.pipe.listen("", self._hear)
        deadline = Deadline(START_LIMIT_S)
        try:
            attach = {"autoAttach": True, "waitForDebuggerOnStart": True, "flatten": True}
            deadline.wait(self.pipe.send("Target.setAutoAttach", attach), "when it was started")
        except BrowserFailure:
            self.close()
            raise

    @property
    def alive(self) -> bool:
        """True while it can be given work."""
        return not self.pipe.ended

    @property
    def is_spent(self) -> bool:
        """True if nobody new is to use it."""
        return not self.alive or (self.num_users == 0 and self.num_contexts >= MOST_CONTEXTS)

    @property
    def pid(self) -> int:
        """The process that all others of it descend from."""
        return self._process.pid

    def open_target(
        self, url: str, context: str, size: tuple[int, int], deadline: Deadline
    ) -> tuple[str, str]:
        """Open a page that waits before its first request: (target, session)."""
        where = {"url": url, "browserContextId": context, "width": size[0], "height": size[1]}
        where |= {"enableBeginFrameControl": True}
        target = deadline.wait(self.pipe.send("Target.createTarget", where), "a new page")["targetId"]
        session = self._session_of(target).result(deadline.left_s)
        with self._lock:
            del self._targets[target]
        return target, session

    def close(self) -> None:
        """End it with all its processes; safe to call twice."""
        self.pipe.close()
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(10)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _session_of(self, target: str) -> Future[str]:
        with self._lock:
            return self._targets.setdefault(target, Future())

    def _hear(self, method: str, params: Mapping[str, Any]) -> None:
        if method == "Target.attachedToTarget":
            info = params["targetInfo"]
            if info["type"] == "page" and "openerId" not in info:
                self._session_of(info["targetId"]).set_result(params["sessionId"])
            else:  # a window or a worker that a page opened: it never runs
                self.pipe.send("Target.closeTarget", {"targetId": info["targetId"]})
        elif method == "Target.detachedFromTarget":
            self.pipe.forget(params["sessionId"], "the page was closed, or its process died")

    def _death_message(self) -> str:
        try:
            code = self._process.wait(5)
        except subprocess.TimeoutExpired:
            return "the browser closed the connection"
        log = self._folder / "log"
        lines = log.read_text(errors="replace").strip().splitlines() if log.exists() else []
        said = f"; it said: {lines[-1][:200]}" if lines else ""
        how = f"died of signal {-code}" if code < 0 else f"ended with exit code {code}"
        return f"the browser {how}{said}"


class _Shared:
    """The browsers of this process, by their kind of sandbox and their scale."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.browsers: dict[tuple[int, Sandbox, float], list[Browser]] = {}
        self.timer: threading.Timer | None = None


_SHARED = _Shared()


def take(sandbox: Sandbox, scale: float) -> Browser:
    """The browser of that scale with the fewest users, or a new one; `give_back` it.

    All pages of a browser wait for its one main thread, so a process with many has one for each core.

    Raises:
        ConfigError, BrowserFailure: as of `Browser`.
    """
    key = (os.getpid(), sandbox, scale)  # a forked child has no use for its parent's
    with _SHARED.lock:
        browsers = _SHARED.browsers.setdefault(key, [])
        for spent in [browser for browser in browsers if browser.is_spent]:
            browsers.remove(spent)
            spent.close()
        is_full = all(browser.num_users >= SHARERS for browser in browsers)
        if not browsers or (is_full and len(browsers) < len(os.sched_getaffinity(0))):
            browsers.append(Browser(sandbox, scale))
        browser = min(browsers, key=lambda browser: browser.num_users)
        browser.num_users += 1
        browser.num_contexts += 1
        return browser


def give_back(browser: Browser) -> None:
    """Say that one user less is there; the browser ends if nobody wants it for a while."""
    with _SHARED.lock:
        browser.num_users -= 1
        if _SHARED.timer is not None:
            _SHARED.timer.cancel()
        _SHARED.timer = threading.Timer(IDLE_S, close_idle)
        _SHARED.timer.daemon = True
        _SHARED.timer.start()


def running() -> list[Browser]:
    """The browsers of this process."""
    own = [browsers for (pid, *_), browsers in _SHARED.browsers.items() if pid == os.getpid()]
    return [browser for browsers in own for browser in browsers]


def close_idle() -> None:
    """End the browsers that no environment uses."""
    with _SHARED.lock:
        for (pid, *_), browsers in _SHARED.browsers.items():
            for browser in [each for each in browsers if each.num_users == 0 or not each.alive]:
                browsers.remove(browser)
                if pid == os.getpid():
                    browser.close()


@atexit.register
def _close_all() -> None:
    for browser in running():
        browser.close()
