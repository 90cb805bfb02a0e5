"""A page as a backend: what MiniWoB++ and tasks of one's own have in common."""

from __future__ import annotations

import difflib
import fnmatch
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from vlrl.envs.gui.actions import Action, Answer, Finish
from vlrl.envs.gui.screen import Element, Form, Screen
from vlrl.envs.gui.web.chromium.browser import Browser, give_back, running, take
from vlrl.envs.gui.web.chromium.chrome import Sandbox
from vlrl.envs.gui.web.chromium.gate import BLANK, ORIGIN, Gate
from vlrl.envs.gui.web.chromium.pipe import BrowserFailure, Deadline, Overdue
from vlrl.envs.gui.web.chromium.pointer import draw_pointer
from vlrl.envs.gui.web.look import Look, script
from vlrl.envs.gui.web.page import Page
from vlrl.errors import ConfigError

SWEEP_EVERY = 8
"""Episodes: left alone, a browser collects the garbage of closed pages late."""
CROWD = 16
"""Environments that share a browser before they are named as what it may be slow for."""
_CROWDED = (
    "; %d other environments share this process's browser: lower episodes.max_episodes, or let them run in "
    "processes with a browser each (env.isolation: process, env.num_processes)"
)


class WebBackend:
    """A browsing context of its own in the process's browser, and in it a page an episode."""

    ends_at_goal = True
    _watched = "null"
    """What of the page's own world is asked for with every image; `_seen` has the last one's value."""

    def __init__(self, gate: Gate, look: Look, sandbox: Sandbox) -> None:
        """Nothing is started before the first reset.

        Raises:
            ConfigError: for a look that cannot be.
        """
        _check(look, sandbox)
        self.form: Form = look.form
        self.size = look.image_size
        self._gate, self._look, self._sandbox = gate, look, sandbox
        self._browser: Browser | None = None
        self._context, self._num_pages = "", 0
        self._anchor: Page | None = None
        self._page: Page | None = None
        self._seen: Any = None

    @property
    def page(self) -> Page:
        """The episode's page."""
        if self._page is None:
            raise RuntimeError("no episode is under way; call reset first")
        return self._page

    def open(self, address: str, seed: int) -> Page:
        """A new page in place of the last one: nothing of an episode is left for the next.

        Raises:
            BrowserFailure: if the browser dies or the page does not load.
        """
        if self._page is not None:
            self._page.close()
            self._page = None
        try:
            browser = self._enter()
            self._sweep()
            self._page = Page(
                browser, self._context, ORIGIN + address, self._gate, self._look, seed, on_hang=self.close
            )
        except Overdue as error:
            self.close()
            others = sum(each.num_users for each in running())
            raise Overdue(f"{error}{_CROWDED % others if others >= CROWD else ''}") from error
        return self._page

    def _sweep(self) -> None:
        """Leave nothing of the pages before."""
        if self._anchor is not None:
            self._anchor.forget_stored()
            self._num_pages += 1
            if self._num_pages % SWEEP_EVERY == 0:
                self._anchor.sweep()

    def perform(self, action: Action) -> Screen:
        """See `Backend`."""
        if not isinstance(action, Answer | Finish):
            self.page.perform(action)
        return self.show()

    def show(self) -> Screen:
        """The image of the page as it is now."""
        page = self.page
        pixels, self._seen = page.image(self._watched)
        if self.form == "desktop":
            draw_pointer(pixels, page.input.pointer, zoom=1 if self._look.scale < 3 else 2)
        return Screen(pixels, page.input.pointer, page.settled)

    def elements(self) -> Sequence[Element]:
        """The accessibility tree, of what lies within the image."""
        scale, (width, height) = self._look.scale, self.size
        found = []
        for item in self.page.evaluate(script("elements.js"), isolated=True):
            x0, y0, x1, y1 = (round(side * scale) for side in item["box"])
            if x0 < width and y0 < height:
                states, path = frozenset(item["states"]), tuple(item["path"])
                box = (max(x0, 0), max(y0, 0), min(x1, width), min(y1, height))
                if box != (x0, y0, x1, y1):
                    states |= {"clipped"}
                found.append(Element(item["role"], item["name"], box, item["value"], states, path))
        return found

    def close(self) -> None:
        """See `Backend`; ends the process of the pages, be it that it computes for ever."""
        browser, self._browser = self._browser, None
        self._page = self._anchor = None
        if browser is not None:
            browser.pipe.send("Target.disposeBrowserContext", {"browserContextId": self._context})
            give_back(browser)

    def _enter(self) -> Browser:
        """The process's browser with a context for this environment; a new one if the last has died."""
        if self._browser is not None and self._browser.alive and self._anchor and not self._anchor.gone:
            return self._browser
        self.close()
        self._browser = browser = take(self._sandbox, self._look.scale)
        deadline = Deadline(self._look.limit_s)
        try:
            made = deadline.wait(browser.pipe.send("Target.createBrowserContext"), "a new context")
            self._context = made["browserContextId"]
            # It keeps the process of the environment's pages alive from one episode to the next.
            self._anchor = Page(browser, self._context, BLANK, self._gate, self._look, 0)
        except BrowserFailure:
            self.close()
            raise
        return browser


def chosen_names(patterns: Sequence[str] | str, names: Sequence[str], env: str) -> tuple[str, ...]:
    """The names that any of the patterns matches.

    Raises:
        ConfigError: for a pattern that matches none.
    """
    found: set[str] = set()
    for pattern in [patterns] if isinstance(patterns, str) else patterns:
        matching = fnmatch.filter(names, str(pattern))
        if not matching:
            close = difflib.get_close_matches(str(pattern), names, 1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            raise ConfigError(f"env {env}: option tasks: {pattern!r} names no task{hint}")
        found.update(matching)
    return tuple(sorted(found))


def drawn_name(names: Sequence[str], task: Mapping[str, Any], pick: Callable[[int], int], env: str) -> str:
    """The name of the task to play: the one that is asked for, or one of `names`.

    Raises:
        ConfigError: for an unknown name or key.
    """
    if unknown := set(task) - {"name"}:
        raise ConfigError(f"env {env}: task has unknown keys {sorted(unknown)}; it may have name")
    name = task.get("name")
    if name is None:
        return names[pick(len(names))]
    if name not in names:
        raise ConfigError(f"env {env}: task name={name!r} is none of the {len(names)} chosen ones")
    return str(name)


def quoted(value: object) -> str:
    """A value as JavaScript writes it: text of a model or a task is data there, never code."""
    return json.dumps(value)


def _check(look: Look, sandbox: str) -> None:
    if sandbox not in ("require", "warn"):
        raise ConfigError(f"web option sandbox={sandbox!r}; require or warn")
    if look.form not in ("desktop", "mobile"):
        raise ConfigError(f"web option form={look.form!r}; desktop or mobile")
    if not 0.5 <= look.scale <= 4 or not all(side * look.scale % 1 == 0 for side in look.size):
        raise ConfigError(f"web option scale={look.scale}; from 0.5 to 4, and whole pixels for {look.size}")
    if not 1 <= look.step_ms <= look.settle_ms <= 10_000:
        raise ConfigError(
            f"web options step_ms={look.step_ms} and settle_ms={look.settle_ms}; "
            "whole numbers with 1 ≤ step_ms ≤ settle_ms ≤ 10000"
        )
