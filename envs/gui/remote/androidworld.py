"""AndroidWorld's server: a phone, its suite of tasks, and their scores from the phone's state.

    GET  /health, /suite/reinitialize?n_task_combinations&seed&task_family
    POST /reset?go_home, /task/initialize?task_type&task_idx, /task/tear_down?task_type&task_idx
    GET  /task/goal?…, /task/score?…, /screenshot?wait_to_stabilize → {"pixels": [height][width][3]}
    POST /execute_action  a JSONAction: {"action_type", "x", "y", "text", …}

As in server/android_server.py and android_world/env/{json_action,actuation,interface}.py of
google-research/android_world. There is one phone a server, and nothing that names its instance: that it was
started again shows in that connections fail, and in that its suite has two of each task again and other
goals, which is looked at before the score. A swipe has a direction only and goes over the whole screen, a
wait is one second, and input_text taps its place first and presses enter afterwards.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal, assert_never

import numpy as np

from vlrl.environment.host.failure import EnvFailure
from vlrl.envs.gui.actions import (
    Action,
    Answer,
    ButtonDown,
    ButtonUp,
    Click,
    Drag,
    Finish,
    Key,
    KeyDown,
    KeyUp,
    LongPress,
    Move,
    OpenApp,
    Pixel,
    Scroll,
    Swipe,
    SystemButton,
    TypeText,
    Wait,
)
from vlrl.envs.gui.codecs.codec import ActionError
from vlrl.envs.gui.env import GuiEnv
from vlrl.envs.gui.remote.backend import READ_ATTEMPTS, SERVER_ERRORS, RemoteBackend, text_of
from vlrl.envs.gui.screen import Form, Screen
from vlrl.seeds import derive_seed

_BUTTONS = {"back": "navigate_back", "home": "navigate_home", "enter": "keyboard_enter"}
_APP = re.compile(r"[\w .-]{1,64}")
"""An app's name, which the server may put into a command line of the phone."""


class AndroidWorldEnv(GuiEnv):
    """Tasks of AndroidWorld: {"task_type": "ContactsAddContact"}, its parameters drawn from the seed."""

    def __init__(
        self,
        urls: Sequence[str],
        size: Sequence[int] = (1080, 2400),
        task_steps: int = 20,
        family: str = "android_world",
        verify: Literal["end", "step"] = "end",
        deadlines: Mapping[str, float] | None = None,
        **rules: Any,
    ) -> None:
        """Take the options.

        Args:
            urls: a server each, such as http://127.0.0.1:5000; one episode at once on each.
            size: [width, height] of the screens.
            task_steps: actions that a task allows for.
            family: of tasks.
            verify: "end", when the agent says that it is done, or "step", after every action.
            deadlines: seconds by phase; see `vlrl.envs.gui.remote.http.Deadlines`.
            **rules: see `vlrl.envs.gui.rules.GuiRules`.
        """
        backend = AndroidWorldBackend(urls, size, task_steps, verify, deadlines)
        backend.family = family
        super().__init__(backend, **rules)


class AndroidWorldBackend(RemoteBackend):
    """One phone of AndroidWorld at a time."""

    name = "gui/androidworld"
    form: Form = "mobile"
    family = "android_world"

    def _begin(self, task: Mapping[str, Any], seed: int) -> Screen:
        self._task: dict[str, Any] = {}
        which = {"task_type": text_of(task, "task_type", self.name), "task_idx": 0}
        drawn = derive_seed("androidworld", seed) % 2**31
        suite = {"n_task_combinations": 1, "seed": drawn, "task_family": self.family}
        limit_s = self.deadlines.reset_s
        self._get("/health", {}, self.deadlines.health_s)
        self._get("/suite/reinitialize", suite, limit_s)
        self._post("/reset", {"go_home": True}, limit_s)
        self._task = which
        self._post("/task/initialize", which, limit_s)
        self.goal = self._goal()
        return self._shown()

    def _act(self, action: Action) -> Screen:
        said = json_action(action, self._pointer)
        self._post("/execute_action", {}, self.deadlines.step_s, said)
        if isinstance(action, Click | LongPress):
            self._pointer = action.point or self._pointer
        return self._shown()

    def _score(self) -> Any:
        self._check_same()
        score = self._get("/task/score", self._task, self.deadlines.verify_s).get("score")
        agreed = not (isinstance(self._done, Finish) and not self._done.success)
        return score if agreed else 0.0

    def _end(self) -> None:
        if self._task:
            which, self._task = self._task, {}
            self._post("/task/tear_down", which, self.deadlines.close_s)

    def _check_same(self) -> None:
        """A suite of one of each task is ours: a server that starts makes two of each."""
        length = self._get(
            "/suite/task_length", {"task_type": self._task["task_type"]}, self.deadlines.verify_s
        )
        goal = self._goal()
        if length.get("length") != 1 or goal != self.goal:
            raise EnvFailure("died", f"{self.name}: the task is now {goal!r}: the server was started again")

    def _goal(self) -> str:
        return str(self._get("/task/goal", self._task, self.deadlines.verify_s).get("goal"))

    def _shown(self) -> Screen:
        said = self._get("/screenshot", {"wait_to_stabilize": True}, self.deadlines.step_s)
        try:
            pixels = np.array(said.get("pixels"), np.uint8)
        except (TypeError, ValueError, OverflowError) as error:
            raise EnvFailure("raised", f"{self.name}: the screenshot is not an image: {error}") from error
        if pixels.ndim != 3 or pixels.shape[2] != 3 or not pixels.size:
            raise EnvFailure("raised", f"{self.name}: the screenshot is of the shape {pixels.shape}")
        return self._screen(pixels)

    def _get(self, path: str, params: Mapping[str, Any], limit_s: float) -> Mapping[str, Any]:
        """What only looks, and drawing the suite, which gives the same suite twice."""
        answer = self.caller.call(
            "GET", path, limit_s, attempts=READ_ATTEMPTS, retried=SERVER_ERRORS, params=_written(params)
        )
        said = answer.good().json()
        if not isinstance(said, Mapping):
            raise EnvFailure("raised", f"{answer.where}: {said!r:.100}")
        return said

    def _post(
        self, path: str, params: Mapping[str, Any], limit_s: float, body: Mapping[str, Any] | None = None
    ) -> None:
        self.caller.call("POST", path, limit_s, params=_written(params), json=body).good()


def json_action(action: Action, pointer: Pixel) -> dict[str, Any]:
    """An action as AndroidWorld's JSON.

    Args:
        action: of a touch screen.
        pointer: where the last tap was: what text is typed into.

    Raises:
        ActionError: for what a phone, or this protocol, cannot do.
    """
    match action:
        case Click(point, "left", 1 | 2 as count, ()):
            return _at("click" if count == 1 else "double_tap", point or pointer)
        case LongPress(point):
            return _at("long_press", point)
        case Swipe(start, end) | Drag((start, end), "left", ()):
            # Up and down are where its finger goes, left and right where it comes from (actuation.py).
            return {"action_type": "swipe", "direction": _direction(start[0] - end[0], end[1] - start[1])}
        case Scroll(dx, dy):
            return {"action_type": "scroll", "direction": _direction(dx, dy)}
        case TypeText(text):
            return {**_at("input_text", pointer), "text": text}
        case Key(("enter",)) | SystemButton("enter"):
            return {"action_type": "keyboard_enter"}
        case SystemButton(button) if button in _BUTTONS:
            return {"action_type": _BUTTONS[button]}
        case OpenApp(app) if _APP.fullmatch(app):
            return {"action_type": "open_app", "app_name": app}
        case Wait():
            return {"action_type": "wait"}
        case Answer(text):
            return {"action_type": "answer", "text": text}
        case Finish(success):
            # Its server runs a status as an unknown action: it does nothing.
            return {"action_type": "status", "goal_status": "complete" if success else "infeasible"}
        case (
            Move() | Click() | ButtonDown() | ButtonUp() | Drag() | Key() | KeyDown() | KeyUp()
            | SystemButton() | OpenApp()
        ):  # fmt: skip
            raise ActionError("unknown_action", f"this phone cannot {action!r:.80}", (0, 0))
        case _:
            assert_never(action)


def _at(kind: str, point: Pixel) -> dict[str, Any]:
    return {"action_type": kind, "x": point[0], "y": point[1]}


def _direction(dx: int, dy: int) -> str:
    if abs(dx) > abs(dy):
        return "right" if dx > 0 else "left"
    return "down" if dy > 0 else "up"


def _written(params: Mapping[str, Any]) -> dict[str, str]:
    return {
        key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in params.items()
    }
