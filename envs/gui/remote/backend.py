"""What the backends for other projects' servers have in common."""

from __future__ import annotations

import math
import secrets
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from vlrl.environment.host.failure import EnvFailure
from vlrl.envs.gui.actions import Action, Answer, Finish, Pixel
from vlrl.envs.gui.remote.http import Caller, Deadlines
from vlrl.envs.gui.remote.machines import Machines
from vlrl.envs.gui.screen import Form, Screen, Verdict
from vlrl.errors import ConfigError
from vlrl.types import ByteArray

READ_ATTEMPTS = 3
"""Of what only looks: a screenshot, a sign of life."""
SERVER_ERRORS = (500, 502, 503, 504)


class RemoteBackend(ABC):
    """A machine behind HTTP: taken at the reset, kept to the end; a subclass speaks its protocol.

    It is verified when the agent says that it is done; with verify="step" after every action, and then an
    episode ends when its goal is reached.
    """

    form: Form = "desktop"
    name = ""

    def __init__(
        self,
        urls: Sequence[str],
        size: Sequence[int],
        max_steps: int,
        verify: Literal["end", "step"],
        deadlines: Mapping[str, float] | None,
    ) -> None:
        if len(size) != 2 or not all(isinstance(side, int) and side > 0 for side in size):
            raise ConfigError(f"{self.name}: size={size!r}; give [width, height] in pixels")
        if verify not in ("end", "step"):
            raise ConfigError(f"{self.name}: verify={verify!r}; end or step")
        self.size = size[0], size[1]
        self.max_steps, self.ends_at_goal = max_steps, verify == "step"
        self.goal = ""
        self.deadlines = Deadlines.of(deadlines)
        self._machines = Machines(urls, self.name)
        self._callers = {url: Caller(url, connect_s=self.deadlines.connect_s) for url in self._machines.urls}
        self._caller: Caller | None = None
        self._episode = ""
        self._done: Action | None = None
        self._pointer: Pixel = (0, 0)

    def reset(self, task: Mapping[str, Any], seed: int) -> Screen:
        """Take a machine and set the task up on it.

        Raises:
            ConfigError: for a wrong task.
            EnvFailure: if there is no machine, or it fails.
        """
        self.end_episode()
        url = self._machines.take(seed, self.deadlines.reset_s)
        self._caller, self._episode = self._callers[url], secrets.token_hex(8)
        self._done, self._pointer = None, (0, 0)
        try:
            return self._begin(task, seed)
        except BaseException:
            self.end_episode()
            raise

    def perform(self, action: Action) -> Screen:
        """Do it and show the screen; nothing is sent twice.

        Raises:
            ActionError: for what the protocol cannot say.
            EnvFailure: if the machine fails, or is another one.
        """
        screen = self._act(action)
        self._done = action
        return screen

    def verdict(self) -> Verdict:
        """How the task stands, if it is time to ask; until then nothing is reached."""
        if not (self.ends_at_goal or isinstance(self._done, Answer | Finish)):
            return Verdict(False, 0.0)
        score = self._score()
        if isinstance(score, bool | int | float) and math.isfinite(score) and 0 <= score <= 1:
            return Verdict(score >= 1, float(score))
        raise EnvFailure("raised", f"{self.name}: a score of {score!r:.100}, which is none from 0 to 1")

    def close(self) -> None:
        """Give the machine back; safe to call twice."""
        self.end_episode()
        for caller in self._callers.values():
            caller.close()

    def end_episode(self) -> None:
        """Give the machine back: others may wait for it."""
        if self._caller is not None:
            try:
                self._end()
            except EnvFailure:
                pass  # of an episode that is over, whatever it was worth
            finally:
                self._caller = None
                self._machines.give_back()

    @property
    def caller(self) -> Caller:
        """The machine of this episode."""
        if self._caller is None:
            raise RuntimeError("no episode is under way; call reset first")
        return self._caller

    def _screen(self, pixels: ByteArray, settled: bool = True) -> Screen:
        height, width = pixels.shape[:2]
        if (width, height) != self.size:
            found = f"the screen of {self.caller.url} is {width}×{height}"
            raise ConfigError(f"{self.name}: {found}; set size=[{width}, {height}]")
        return Screen(pixels, self._pointer, settled)

    @abstractmethod
    def _begin(self, task: Mapping[str, Any], seed: int) -> Screen:
        """Set the task up on the machine that was taken, and show its screen."""

    @abstractmethod
    def _act(self, action: Action) -> Screen:
        """Do an action and show the result."""

    @abstractmethod
    def _score(self) -> Any:
        """What the machine gives for the task as it stands."""

    def _end(self) -> None:  # noqa: B027 (a protocol may have no end of an episode)
        """Notify the machine that the episode is over; does nothing unless a subclass needs it."""


def text_of(task: Mapping[str, Any], key: str, what: str) -> str:
    """A task's text. Raises ConfigError if it has none."""
    found = task.get(key)
    if not isinstance(found, str) or not found:
        raise ConfigError(f"{what}: the task needs {key!r}, a text; it has {sorted(task)}")
    return found
