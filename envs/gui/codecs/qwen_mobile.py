"""Qwen2.5-VL's and Qwen3-VL's mobile_use: one function, called in <tool_call> tags.

Names of the actions and their arguments, and the enums: QwenLM/Qwen3-VL,
cookbooks/utils/agent_function_call.py, class MobileUse, for Qwen2.5-VL; for Qwen3-VL the prompt of
cookbooks/mobile_agent.ipynb, which leaves `key` and `open` out, adds `answer`, names a screen of 999x999
and divides by 999 (facts; the descriptions are ours). Either version reads the actions of both; each writes
its own.

`key` takes the names of adb's key events. Those that are not a key of a keyboard, such as volume_up, are
refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vlrl.envs.gui.actions import (
    Action,
    Click,
    Key,
    LongPress,
    OpenApp,
    Swipe,
    SystemButton,
    SystemButtonName,
)
from vlrl.envs.gui.codecs.grammar.frames import Grid
from vlrl.envs.gui.codecs.grammar.keys import key_name
from vlrl.envs.gui.codecs.grammar.parsed_call import ParsedAction, seconds
from vlrl.envs.gui.codecs.qwen import QwenCodec, Version, action_of, of_type, one_of, parameters

_BUTTONS: Mapping[str, SystemButtonName] = {"back": "back", "home": "home", "menu": "menu", "enter": "enter"}
_ADB: Mapping[str, str] = {
    "del": "backspace",
    "forward_del": "delete",
    "move_home": "home",
    "move_end": "end",
    **{f"dpad_{way}": way for way in ("up", "down", "left", "right")},
}
_ACTIONS: Mapping[str, str] = {
    "key": 'send adb\'s key event `text`, such as "enter", "del" or "dpad_down"',
    "click": "tap the point `coordinate`",
    "long_press": "hold the point `coordinate` for `time` seconds",
    "swipe": "draw a finger from `coordinate` to `coordinate2`",
    "type": "type `text` into the field that has the focus",
    "answer": "answer the question with `text`",
    "system_button": "press the system's `button`",
    "open": "open the app named `text`",
    "wait": "wait `time` seconds for the screen to change",
    "terminate": "end the task and say its `status`",
}
_LEFT_OUT: Mapping[Version, tuple[str, ...]] = {"2.5": ("answer",), "3": ("key", "open")}


class QwenMobileCodec(QwenCodec):
    """mobile_use in <tool_call> tags."""

    function = "mobile_use"
    description = (
        "Use a touchscreen to work with a mobile device, and see its screen.\n"
        "* You can tap, swipe, type and press the system's buttons.\n"
        "* Apps may need time to start or to react; wait and look again.\n"
        "* The screen's resolution is {screen}.\n"
        "* Tap the middle of an element, not its edge."
    )

    def _schema(self) -> dict[str, Any]:
        actions = {name: does for name, does in _ACTIONS.items() if name not in _LEFT_OUT[self.version]}
        texts = [f"`action={name}`" for name in ("key", "type", "answer", "open") if name in actions]
        return parameters(
            action=action_of(actions),
            coordinate=of_type(
                "array",
                "(x, y): how far from the left edge and from the top edge. Needed by `action=click`, "
                "`action=long_press` and `action=swipe`.",
            ),
            coordinate2=of_type("array", "(x, y): where a swipe ends. Needed by `action=swipe` only."),
            text=of_type("string", f"Needed by {', '.join(texts[:-1])} and {texts[-1]} only."),
            time=of_type("number", "Seconds. Needed by `action=long_press` and `action=wait` only."),
            button=one_of(
                "Back returns to what was shown before, Home to the home screen, Menu opens the list of "
                "running apps, Enter presses enter. Needed by `action=system_button` only.",
                *(name.capitalize() for name in _BUTTONS),
            ),
            status=one_of("How the task ended. Needed by `action=terminate` only.", "success", "failure"),
        )

    def _action(self, said: ParsedAction, grid: Grid) -> Action | None:
        match said.name:
            case "click":
                return Click(said.point("coordinate", grid))
            case "long_press":
                return LongPress(said.point("coordinate", grid), said.milliseconds("time", 800))
            case "swipe":
                return Swipe(said.point("coordinate", grid), said.point("coordinate2", grid))
            case "key":
                return _key_event(said)
            case "system_button":
                return SystemButton(said.choice("button", _BUTTONS))
            case "open":
                return OpenApp(said.text("text"))
        return None

    def _arguments(self, action: Action, grid: Grid) -> dict[str, Any] | None:
        match action:
            case Click(point=(_, _) as point, button="left", count=1, modifiers=()):
                return {"action": "click", "coordinate": list(grid.written(point))}
            case LongPress(point=point, duration_ms=duration):
                place = list(grid.written(point))
                return {"action": "long_press", "coordinate": place, "time": seconds(duration)}
            case Swipe(start=start, end=end):
                places = list(grid.written(start)), list(grid.written(end))
                return {"action": "swipe", "coordinate": places[0], "coordinate2": places[1]}
            case Key(keys=(key,)) if key != "menu":  # adb's menu is the system's button
                return {"action": "key", "text": next((event for event, k in _ADB.items() if k == key), key)}
            case SystemButton(name=name):
                return {"action": "system_button", "button": name.capitalize()}
            case OpenApp(name=name):
                return {"action": "open", "text": name}
        return None


def _key_event(said: ParsedAction) -> Action:
    event = said.text("text").strip().lower().removeprefix("keycode_")
    if event != "enter" and event in _BUTTONS:
        return SystemButton(_BUTTONS[event])
    try:
        return Key((_ADB[event] if event in _ADB else key_name(event),))
    except ValueError:
        raise said.wrong("text", "is no key of a keyboard") from None
