"""BrowserGym's tasks, one episode at a time, in one thread: Playwright's plain interface belongs to one."""

from __future__ import annotations

import asyncio
import base64
import importlib
import importlib.util
import io
import os
import shutil
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import browsergym.core
import gymnasium
from browsergym.core import env as browsergym_env
from browsergym.core.action.highlevel import HighLevelActionSet
from browsergym.core.chat import Chat
from elements import Tree
from PIL import Image

BROWSERS = (
    "chromium-headless-shell",
    "chrome-headless-shell",
    "chromium",
    "chromium-browser",
    "google-chrome",
)
"""Looked for where Playwright's own browser is not installed."""
MAX_EPISODES = 200
"""A browser that has served so many is renewed."""
ACTIONS = ("chat", "infeas", "coord", "nav", "tab")
"""Subsets of BrowserGym's actions: by coordinates, none by an element's id."""


class UnseenChat(Chat):  # type: ignore[misc]  # not installed beside vlrl
    """BrowserGym's chat without the second browser that shows it to people."""

    def __init__(self, **options: Any) -> None:
        self.messages: list[dict[str, Any]] = []
        self.page = self

    def evaluate(self, script: str) -> None:
        """Show a message to nobody."""

    def close(self) -> None:
        """Nothing is open."""


class KeptBrowser:
    """One browser for one episode after the other, each in a context of its own.

    It takes the place of Playwright where BrowserGym's environment asks that for a browser, at every reset.
    """

    def __init__(self) -> None:
        self._playwright = browsergym.core._get_global_playwright()
        self.selectors, self.chromium = self._playwright.selectors, self
        self._browser: Any = None
        self._options: dict[str, Any] = {}
        self._num_episodes = 0
        browsergym_env._get_global_playwright = lambda: self

    def launch(self, **options: Any) -> Any:
        """Give the browser, or a new one if it has died, is worn, or has other options."""
        self._num_episodes += 1
        if options != self._options or self._num_episodes > MAX_EPISODES or not self._is_alive():
            self._close()
            self._browser = self._playwright.chromium.launch(**options)
            self._options, self._num_episodes = options, 1
        return self._browser

    def end(self) -> None:
        """End the browser, and Playwright, which then removes what it has stored."""
        self._close()
        self._playwright.stop()

    def _is_alive(self) -> bool:
        with suppress(Exception):  # what Playwright knows of it may be old: only a call tells
            self._browser.new_browser_cdp_session().detach()
            return True
        return False

    def _close(self) -> None:
        with suppress(Exception):
            self._browser.close()


class Episodes:
    """Answers requests: each method is one, its arguments are the request's keys."""

    def __init__(self, chromium: str) -> None:
        self._chromium = chromium
        self._actions = HighLevelActionSet(subsets=list(ACTIONS), multiaction=True, strict=True)
        self._thread = ThreadPoolExecutor(1)
        self._env: Any = None
        self._browser: KeptBrowser | None = None
        self._wants_elements = False

    @property
    def num_playing(self) -> int:
        """Episodes under way."""
        return int(self._env is not None)

    async def describe(self) -> dict[str, Any]:
        """Every registered task."""
        return {"tasks": sorted(name for name in gymnasium.registry if name.startswith("browsergym/"))}

    async def reset(self, task: str, seed: int, make: dict[str, Any], elements: bool) -> dict[str, Any]:
        """Begin an episode: {"goal": parts of a message, and what `_shown` gives}."""
        begun: dict[str, Any] = await self._in_thread(self._reset, task, seed, make, elements)
        return begun

    async def step(self, calls: list[list[Any]]) -> dict[str, Any]:
        """Make calls of the action set: {"reward", "ended", "reply", and what `_shown` gives}."""
        done: dict[str, Any] = await self._in_thread(self._step, calls)
        return done

    async def close(self) -> dict[str, Any]:
        """End the episode."""
        await self._in_thread(self._close)
        return {}

    async def end(self) -> None:
        """End everything, the browser too."""
        await self._in_thread(self._end)

    async def _in_thread(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._thread, function, *arguments)

    def _reset(self, task: str, seed: int, make: dict[str, Any], elements: bool) -> dict[str, Any]:
        self._close()
        self._browser = self._browser or KeptBrowser()
        browser = {"executable_path": self._chromium or found_browser(), **make.pop("pw_chromium_kwargs", {})}
        self._env = gymnasium.make(
            task,
            disable_env_checker=True,
            action_mapping=self._actions.to_python_code,
            pw_chromium_kwargs=browser,
            **make,
        )
        self._wants_elements = elements
        try:
            seen, _ = self._env.reset(seed=seed)
        except BaseException:
            self._close()
            raise
        return {"goal": list(seen["goal_object"]), **self._shown(seen)}

    def _step(self, calls: Sequence[Sequence[Any]]) -> dict[str, Any]:
        # Values are written by repr, so that BrowserGym's parser reads them back as the literals they are.
        text = "\n".join(f"{name}({', '.join(map(repr, values))})" for name, values in calls)
        num_said = len(self._env.unwrapped.chat.messages)
        seen, reward, terminated, truncated, _ = self._env.step(text)
        said = [m["message"] for m in seen["chat_messages"][num_said:] if m["role"] == "user"]
        ended = {"reward": float(reward), "ended": bool(terminated or truncated), "reply": "\n".join(said)}
        return {**ended, **self._shown(seen)}

    def _shown(self, seen: Mapping[str, Any]) -> dict[str, Any]:
        """The active page, the titles of all, and why the last action failed."""
        image = io.BytesIO()
        Image.fromarray(seen["screenshot"]).save(image, "PNG", compress_level=1)
        tree = Tree(seen["axtree_object"], seen["extra_element_properties"]) if self._wants_elements else None
        return {
            "image": base64.b64encode(image.getvalue()).decode(),
            "tabs": list(seen["open_pages_titles"]),
            "tab": int(seen["active_page_index"][0]),
            "failure": seen["last_action_error"],
            "elements": tree.found if tree else [],
        }

    def _end(self) -> None:
        self._close()
        if self._browser is not None:
            self._browser.end()

    def _close(self) -> None:
        env, self._env = self._env, None
        if env is not None:
            env.unwrapped.browser = None  # it is kept
            with suppress(Exception):  # of a browser that has died
                env.close()


def found_browser() -> str:
    """Playwright's own browser, or one on the PATH.

    Raises:
        FileNotFoundError: if there is none.
    """
    own = str(browsergym.core._get_global_playwright().chromium.executable_path)
    found = own if os.path.exists(own) else next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        raise FileNotFoundError(f"no browser: neither Playwright's nor any of {', '.join(BROWSERS)}")
    return found


def load(package: str) -> None:
    """Import a package, or a file, that registers tasks."""
    if not package.endswith(".py"):
        importlib.import_module(package)
        return
    spec = importlib.util.spec_from_file_location(Path(package).stem, package)
    assert spec is not None and spec.loader is not None
    spec.loader.exec_module(importlib.util.module_from_spec(spec))


@asynccontextmanager
async def opened(name: str, args: Mapping[str, Any]) -> AsyncIterator[Episodes]:
    """Load what registers tasks, and play them.

    Args:
        name: of no use here.
        args: packages; suites, whose packages are loaded where no other registers them; chromium;
            miniwob, the URL of its pages where the environment does not say it; and folder, for what browsers
            store, which is removed at the end.
    """
    os.environ["TMPDIR"] = args["folder"]
    if args["miniwob"]:
        os.environ.setdefault("MINIWOB_URL", args["miniwob"])
    browsergym_env.Chat = UnseenChat
    # At every reset it says of each option of `make` that it is not the task's.
    browsergym_env.logger.addFilter(lambda record: not record.getMessage().startswith("Overriding"))
    for package in args["packages"]:
        load(package)
    for suite in args["suites"]:
        if not any(task.startswith(f"browsergym/{suite}.") for task in gymnasium.registry):
            load(f"browsergym.{suite}")
    episodes = Episodes(args["chromium"])
    try:
        yield episodes
    finally:
        await episodes.end()
        shutil.rmtree(args["folder"], ignore_errors=True)
