"""OSGym's servers: a desktop that is put back, played and evaluated behind three calls.

    POST /reset     {"task_config", "timeout"} → {"screenshot": base64, "problem", "vm_id"}; ends all that ran
    POST /step      {"action": text, "vm_id"} → {"screenshot", "is_finish", "reward"}; finish() evaluates
    POST /shutdown  {"vm_id"}

As in main.py and desktop_env/desktop_env.py of agiopen-org/osgym. A failure is status 400.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from typing import Any, assert_never

from vlrl.environment.host.failure import EnvFailure
from vlrl.environment.images import pixels_of
from vlrl.envs.gui.actions import (
    NOTCH_PX,
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
from vlrl.envs.gui.codecs.grammar.keys import written_key
from vlrl.envs.gui.env import GuiEnv
from vlrl.envs.gui.remote.backend import RemoteBackend, text_of
from vlrl.envs.gui.screen import Screen

_SHIFTED = {"&": "7", ")": "0"}
"""What its grammar would take for the end of an action, as keys of the US layout."""
_CLICKS = {("left", 1): "click", ("left", 2): "left_double", ("right", 1): "right_single"}


class OSGymEnv(GuiEnv):
    """Tasks of OSWorld on OSGym's servers, which evaluate them."""

    def __init__(
        self,
        urls: Sequence[str],
        size: Sequence[int] = (1920, 1080),
        task_steps: int = 15,
        idle_s: int = 600,
        deadlines: Mapping[str, float] | None = None,
        **rules: Any,
    ) -> None:
        """Take the options.

        Args:
            urls: a server each, such as http://127.0.0.1:20000; one episode at once on each.
            size: [width, height] of the screens.
            task_steps: actions that a task allows for.
            idle_s: the server frees a desktop that it has not heard of for so long.
            deadlines: seconds by phase; see `vlrl.envs.gui.remote.http.Deadlines`.
            **rules: see `vlrl.envs.gui.rules.GuiRules`.
        """
        backend = OSGymBackend(urls, size, task_steps, "end", deadlines)
        backend.idle_s = idle_s
        super().__init__(backend, **rules)


class OSGymBackend(RemoteBackend):
    """One desktop of OSGym at a time."""

    name = "gui/osgym"
    idle_s = 600

    def _begin(self, task: Mapping[str, Any], seed: int) -> Screen:
        text_of(task, "instruction", self.name)
        self._vm: Any = None
        self._reward: Any = None
        said = self._ask(
            "/reset", {"task_config": dict(task), "timeout": self.idle_s}, self.deadlines.reset_s
        )
        self._vm, self.goal = said.get("vm_id"), str(said.get("problem"))
        if not isinstance(self._vm, int):
            raise EnvFailure("raised", f"{self.name}: {self.caller.url}/reset gave vm_id {self._vm!r}")
        return self._shown(said)

    def _act(self, action: Action) -> Screen:
        text = text_of_action(action)
        ends = isinstance(action, Answer | Finish)
        limit_s = self.deadlines.verify_s if ends else self.deadlines.step_s
        said = self._ask("/step", {"action": text, "vm_id": self._vm}, limit_s)
        if said.get("is_finish") is not ends:  # the server has a limit of its own, and no say in the episode
            raise EnvFailure("raised", f"{self.name}: after {text!r} is_finish is {said.get('is_finish')!r}")
        self._reward = said.get("reward")
        if ends:
            self._vm = None  # freed already
        match action:
            case Move(point) | Scroll(point=tuple(point)) | Click(point=tuple(point)):
                self._pointer = point
            case Drag(path):
                self._pointer = path[-1]
        return self._shown(said)

    def _score(self) -> Any:
        return self._reward

    def _end(self) -> None:
        if self._vm is not None:
            vm, self._vm = self._vm, None
            self.caller.call("POST", "/shutdown", self.deadlines.close_s, json={"vm_id": vm})

    def _shown(self, said: Mapping[str, Any]) -> Screen:
        where = f"{self.name}: {self.caller.url}"
        try:
            data = base64.b64decode(str(said.get("screenshot")), validate=True)
        except (binascii.Error, ValueError) as error:
            raise EnvFailure("raised", f"{where}: the screenshot is not base64: {error}") from error
        return self._screen(pixels_of(data, where))

    def _ask(self, path: str, body: Mapping[str, Any], limit_s: float) -> Mapping[str, Any]:
        said = self.caller.call("POST", path, limit_s, json=dict(body)).good().json()
        if not isinstance(said, Mapping):
            raise EnvFailure("raised", f"{self.name}: {path} gave {said!r:.100}")
        return said


def text_of_action(action: Action) -> str:
    """An action in OSGym's grammar; several that belong to one are joined by "&".

    Raises:
        ActionError: for one that the grammar cannot say.
    """
    match action:
        case Move((x, y)):
            return f"move({x},{y})"
        case Click(tuple(point), button, count, ()) if (button, count) in _CLICKS:
            return f"{_CLICKS[button, count]}({point[0]},{point[1]})"
        case Scroll(0, dy, tuple(point)) if dy:
            notches = max(round(abs(dy) / NOTCH_PX), 1)
            return f"scroll({point[0]},{point[1]},{-notches if dy > 0 else notches})"
        case TypeText(text):
            return "&".join(_typed(text)) or "wait()"
        case Key((key,)):
            return f"press({_key(key)})"
        case Key(keys):
            return f"hotkey({','.join(map(_key, keys))})"
        case Wait():
            return "wait()"
        case Answer() | Finish(True):
            return "finish()"
        case Finish():
            return "call_user()"
        case Drag((start, end), "left", ()):
            return _drag(start, end)
        case (
            Click() | Scroll() | Drag() | ButtonDown() | ButtonUp() | KeyDown() | KeyUp() | LongPress()
            | Swipe() | SystemButton() | OpenApp()
        ):  # fmt: skip
            raise ActionError("unknown_action", f"OSGym's grammar cannot say {action!r:.80}", (0, 0))
        case _:
            assert_never(action)


def _drag(start: Pixel, end: Pixel) -> str:
    return f"drag({start[0]},{start[1]},{end[0]},{end[1]})"


def _typed(text: str) -> list[str]:
    """A text in pieces; what would end an action is pressed instead, so that text is never an action."""
    if not all(character == "\n" or " " <= character <= "~" for character in text):
        raise ActionError("unknown_action", "this desktop can type ASCII only", (0, 0))
    pieces, run = [], ""
    for character in text:
        if character in _SHIFTED:
            pieces += [f"type({run})"] if run else []
            pieces.append(f"hotkey(shift,{_SHIFTED[character]})")
            run = ""
        else:
            run += character
    return pieces + ([f"type({run})"] if run else [])


def _key(name: str) -> str:
    if name in "&),(":
        raise ActionError("unknown_action", f"OSGym's grammar cannot say the key {name!r}", (0, 0))
    return written_key(name, "pyautogui")
