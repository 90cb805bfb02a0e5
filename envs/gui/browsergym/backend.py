"""A task of BrowserGym as a backend: its browser, its reward, its end."""

from __future__ import annotations

import base64
import binascii
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from vlrl.environment.host.failure import EnvFailure
from vlrl.environment.images import pixels_of
from vlrl.envs.adapters.contents import observation_of
from vlrl.envs.gui.actions import Action, Pixel
from vlrl.envs.gui.browsergym.calls import Standing, calls_of, pointer_after
from vlrl.envs.gui.browsergym.programs import programs
from vlrl.envs.gui.remote.http import Deadlines
from vlrl.envs.gui.screen import Element, Form, Screen, Verdict
from vlrl.envs.gui.web.backend import chosen_names, drawn_name
from vlrl.envs.gui.web.miniwob.pages import pages_folder
from vlrl.errors import ConfigError
from vlrl.foreign.pool import kind_of
from vlrl.foreign.program import ForeignProgram, Gone
from vlrl.seeds import derive_seed

NAME = "gui/browsergym"
MINIWOB = "browsergym/miniwob."
MINIWOB_SIZE, USUAL_SIZE = (498, 321), (1280, 720)
"""(width, height) of BrowserGym's screenshots: of MiniWoB's pages 1.5 times its window."""
OWN = ("action_mapping", "use_raw_page_output", "wait_for_user_message", "disable_env_checker")
"""Arguments of BrowserGym's environment that are not for users."""


class BrowserGymBackend:
    """One of the tasks an episode, in a program of its own.

    Attributes:
        size: (width, height) of the page that is shown; one that a page opens may have another size.
        goal_images: images that belong to the goal.
        remarks: what BrowserGym says beside the screenshot: a reply of the user, a failed action, the tabs.
        was_answered: the task replied to the last message.
    """

    form: Form = "desktop"
    ends_at_goal = False

    def __init__(
        self,
        tasks: Sequence[str] | str,
        python: str | None,
        packages: Sequence[str],
        make: Mapping[str, Any],
        size: Sequence[int] | None,
        task_steps: int,
        chromium: str,
        deadlines: Mapping[str, float] | None,
        wants_elements: bool,
    ) -> None:
        """Start a program and choose the tasks; see `vlrl.envs.gui.browsergym.env.BrowserGymEnv`."""
        patterns = [tasks] if isinstance(tasks, str) else list(tasks)
        if wrong := sorted(set(make) & set(OWN)):
            raise ConfigError(f"{NAME}: make has {wrong[0]!r}, which vlrl sets itself")
        self.max_steps, self._make, self._task = task_steps, dict(make), ""
        self._deadlines = Deadlines.of(deadlines)
        self._wants_elements = wants_elements
        self._kind = kind_of(
            python or sys.executable,
            {
                "packages": [*map(_found_file, packages)],
                "suites": _suites_of(patterns),
                "chromium": chromium,
                "miniwob": _miniwob_url() if any(p.startswith(MINIWOB) for p in patterns) else "",
            },
        )
        self._program: ForeignProgram | None = None
        try:
            known = self._ask("describe", self._deadlines.reset_s)["tasks"]
            self.tasks = chosen_names(patterns, known, NAME)
            self._task_size = _size_of(self.tasks, make, size)
        except ConfigError:
            self.close()
            raise
        self._begin("")

    def _begin(self, task: str) -> None:
        self._task, self.size = task, self._task_size
        self._pointer: Pixel = (0, 0)
        self._elements: list[Element] = []
        self._return, self._is_over, self.was_answered = 0.0, False, False
        self._tab, self._num_tabs, self.remarks = 0, 1, list[str]()

    def reset(self, task: Mapping[str, Any], seed: int) -> Screen:
        """Begin a task: the one that `task` names, or one sampled from the seed.

        Args:
            task: {}, or name; seed, which BrowserGym is given in the place of one derived from ours; and
                task_kwargs, added to those of the option make.
            seed: of the episode.

        Raises:
            ConfigError: for a task that is not chosen, another key, or a screen of another size.
            EnvFailure: if it cannot be set up.
        """
        if unknown := sorted(set(task) - {"name", "seed", "task_kwargs"}):
            raise ConfigError(f"env {NAME}: task has {unknown[0]!r}; it may have name, seed, task_kwargs")
        drawn = derive_seed("browsergym", seed)
        named = {"name": task["name"]} if "name" in task else {}
        self._begin(drawn_name(self.tasks, named, lambda number: drawn % number, NAME))
        given = {**self._make.get("task_kwargs", {}), **task.get("task_kwargs", {})}
        said = self._ask(
            "reset",
            self._deadlines.reset_s,
            task=self._task,
            seed=task.get("seed", drawn % 2**32),
            make={**self._make, "task_kwargs": given},
            elements=self._wants_elements,
        )
        try:
            asked = observation_of([said["goal"]])
        except ValueError as error:
            raise EnvFailure("raised", f"{NAME}: the goal of {self._task}: {error}") from error
        self._goal, self.goal_images = asked.text, asked.images
        screen = self._shown(said)
        if self.size != self._task_size:
            found = f"the screen of {self._task} is {self.size[0]}×{self.size[1]}"
            raise ConfigError(f"{NAME}: {found}; set size=[{self.size[0]}, {self.size[1]}]")
        return screen

    @property
    def goal(self) -> str:
        """The task's goal, as far as it is text."""
        return self._goal

    @property
    def task_info(self) -> Mapping[str, Any]:
        """Name of the task."""
        return {"task": self._task}

    def perform(self, action: Action) -> Screen:
        """Do it by BrowserGym's action set, which waits and looks at the task afterwards.

        Raises:
            ActionError: for one that the set has no function for.
            EnvFailure: if the browser or the program fails, or takes too long.
        """
        limit_s = self._deadlines.step_s
        at = Standing(self._pointer, self._tab, self._num_tabs, round(limit_s / 2 * 1000))
        said = self._ask("step", limit_s, calls=calls_of(action, at))
        self._pointer = pointer_after(action, self._pointer)
        self._return += said["reward"]
        self._is_over, self.was_answered = said["ended"], bool(said["reply"])
        return self._shown(said)

    def verdict(self) -> Verdict:
        """The sum of BrowserGym's rewards; 1 is success."""
        progress = min(max(self._return, 0.0), 1.0)
        return Verdict(self._return >= 1.0, progress, ended=self._is_over, reward=self._return)

    def elements(self) -> Sequence[Element]:
        """BrowserGym's accessibility tree of the page that is shown."""
        return self._elements

    def close(self) -> None:
        """End the episode; the program and its browser are kept for the next environment."""
        program, self._program = self._program, None
        if program is not None and program.alive:
            try:
                program.ask("close", self._deadlines.close_s)
            except (Gone, TimeoutError, RuntimeError):
                program.kill()
            else:
                programs.give_back(self._kind, program)

    def _shown(self, said: Mapping[str, Any]) -> Screen:
        self._elements = [_element(each) for each in said["elements"]]
        self._tab, self._num_tabs = said["tab"], len(said["tabs"])
        self.remarks = _remarks(said)
        try:
            data = base64.b64decode(said["image"], validate=True)
        except binascii.Error as error:
            raise EnvFailure("raised", f"{NAME}: the screenshot is not base64: {error}") from error
        pixels = pixels_of(data, NAME)
        self.size = pixels.shape[1], pixels.shape[0]
        return Screen(pixels, self._pointer)

    def _ask(self, method: str, limit_s: float, **request: Any) -> Any:
        """Ask the program. A reset is asked of a new one if it had just ended for lack of work.

        Raises:
            EnvFailure: of the kind hung, died or raised.
        """
        for attempt in range(2):
            if method != "step" and (self._program is None or not self._program.alive):
                self._program = programs.take(self._kind)
            if self._program is None:
                raise RuntimeError("no episode is under way; call reset first")
            try:
                return self._program.ask(method, limit_s, **request)
            except Gone as error:
                if attempt or method == "step":
                    raise EnvFailure("died", str(error)) from error
                self._program = None  # it may be on its way out, and not gone yet
            except TimeoutError as error:
                self._program.kill()  # a page that computes for ever keeps its browser busy
                raise EnvFailure("hung", str(error)) from error
            except RuntimeError as error:
                is_dead = "TargetClosedError" in str(error) or "crashed" in str(error)
                raise EnvFailure("died" if is_dead else "raised", f"{error} (task {self._task})") from error
        raise AssertionError("unreachable")


def _suites_of(patterns: Sequence[str]) -> list[str]:
    """What tasks belong to by their names: browsergym/webarena.7 to webarena."""
    names = [pattern.removeprefix("browsergym/").partition(".") for pattern in patterns]
    return sorted({suite for suite, dot, _ in names if dot and suite.isidentifier()})


def _found_file(package: str) -> str:
    if not package.endswith(".py"):
        return package
    if not Path(package).is_file():
        raise ConfigError(f"{NAME}: packages: {package} does not exist (looked in {Path.cwd()})")
    return str(Path(package).resolve())


def _miniwob_url() -> str:
    """Where the pages of the package miniwob are, if it is installed here."""
    with suppress(ConfigError):
        return f"file://{pages_folder()}/miniwob/"
    return ""


def _size_of(tasks: Sequence[str], make: Mapping[str, Any], given: Sequence[int] | None) -> tuple[int, int]:
    if given is not None:
        if len(given) != 2 or not all(isinstance(side, int) and side > 0 for side in given):
            raise ConfigError(f"{NAME}: size={given!r}; give [width, height] in pixels")
        return given[0], given[1]
    if all(task.startswith(MINIWOB) for task in tasks):
        return MINIWOB_SIZE
    viewport = make.get("viewport") or {}
    return viewport.get("width", USUAL_SIZE[0]), viewport.get("height", USUAL_SIZE[1])


def _element(said: Mapping[str, Any]) -> Element:
    x0, y0, x1, y1 = said["box"]
    states, path = frozenset(said["states"]), tuple(said["path"])
    return Element(said["role"], said["name"], (x0, y0, x1, y1), said["value"], states, path)


def _remarks(said: Mapping[str, Any]) -> list[str]:
    found = []
    if said.get("reply"):
        found.append(f"The user says: {said['reply']}")
    if said["failure"]:
        found.append(f"The action failed: {said['failure'].splitlines()[0][:200]}")
    if len(said["tabs"]) > 1:
        titles = [f"{number}. {title[:80] or 'untitled'}" for number, title in enumerate(said["tabs"], 1)]
        found.append(f"Tabs: {', '.join(titles)}. Shown is {said['tab'] + 1}.")
    return found
