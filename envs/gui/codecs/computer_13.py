"""OSWorld's computer_13: {"action_type": "CLICK", "x": 100, "y": 200}; thirteen types, WAIT, FAIL, DONE.

Sources, facts only: xlang-ai/OSWorld, desktop_env/actions.py (ACTION_SPACE) for the types and their
parameters, desktop_env/controllers/python.py (execute_action) for what they do. The parameters may also
stand under "parameters". Scrolls count notches of NOTCH_PX, up and to the right where positive. SCROLL,
DRAG_TO, MOUSE_DOWN and MOUSE_UP have no place or start of their own: they act where the pointer is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vlrl.envs.gui.actions import (
    NOTCH_PX,
    Action,
    ButtonDown,
    ButtonUp,
    Click,
    Drag,
    Finish,
    Key,
    KeyDown,
    KeyUp,
    Move,
    Scroll,
    TypeText,
    Wait,
)
from vlrl.envs.gui.codecs.grammar.frames import Grid, shown_extent
from vlrl.envs.gui.codecs.grammar.grammar_codec import GrammarCodec
from vlrl.envs.gui.codecs.grammar.json_text import json_text, said_in_object
from vlrl.envs.gui.codecs.grammar.keys import written_key, written_keys
from vlrl.envs.gui.codecs.grammar.parsed_call import BUTTONS, MAX_SCROLL_PX, ParsedAction, notches
from vlrl.envs.gui.codecs.grammar.parts import action_part
from vlrl.envs.gui.screen import Form

_SPECIAL: Mapping[str, Action] = {"WAIT": Wait(), "FAIL": Finish(False), "DONE": Finish(True)}
_BUTTON = '"button" ("left", "right" or "middle"; optional)'
_PLACE = '"x", "y"'
_TYPES: Mapping[str, str] = {
    "MOVE_TO": f"move the pointer; {_PLACE}",
    "CLICK": f'click; {_PLACE} (optional: where the pointer is), {_BUTTON}, "num_clicks" (1 to 3; optional)',
    "MOUSE_DOWN": f"press a button and hold it; {_BUTTON}",
    "MOUSE_UP": f"let a button go; {_BUTTON}",
    "RIGHT_CLICK": f"{_PLACE} (optional)",
    "DOUBLE_CLICK": f"{_PLACE} (optional)",
    "DRAG_TO": f"drag with the left button from where the pointer is; {_PLACE}",
    "SCROLL": 'turn the wheel where the pointer is; notches "dx" (right) and "dy" (up)',
    "TYPING": 'type "text"',
    "PRESS": 'press and release "key"',
    "KEY_DOWN": 'press "key" and hold it',
    "KEY_UP": 'let "key" go',
    "HOTKEY": 'press all of the list "keys" together',
    "WAIT": "wait",
    "FAIL": "the task cannot be done",
    "DONE": "the task is done",
}
_NAMES = ("x", "y", "button", "num_clicks", "dx", "dy", "text", "key", "keys")


class Computer13Codec(GrammarCodec):
    """One JSON object with an action_type in capitals."""

    def instructions(self, screen: tuple[int, int], form: Form) -> str:
        """See `Codec`."""
        extent = shown_extent(self._frame, screen)
        corner = f", the bottom right corner is ({extent[0]:g}, {extent[1]:g})"
        types = "\n".join(f"- {name}: {does}" for name, does in _TYPES.items())
        return (
            "You carry out tasks on a computer. You are given a screenshot and answer with one action, a "
            'JSON object in backticks, such as\n```\n{"action_type": "CLICK", "x": 100, "y": 200}\n```\n'
            f"The top left corner of the screen is (0, 0){corner}. The types and their parameters:\n{types}"
        )

    def _read(self, text: str, grid: Grid) -> Action:
        span = action_part(text)
        if text[slice(*span)].strip('"') in _SPECIAL:
            return _SPECIAL[text[slice(*span)].strip('"')]
        said = said_in_object(text, "action_type", "parameters")
        said.check_names(_NAMES)
        return _action(said, grid)

    def _written(self, action: Action, grid: Grid) -> str | None:
        members = _members(action, grid)
        return None if members is None else f"```\n{json_text(members)}\n```"


def _action(said: ParsedAction, grid: Grid) -> Action:
    place = said.xy(grid) if said.has("x", "y") else None
    match said.name:
        case "MOVE_TO":
            return Move(said.xy(grid))
        case "CLICK":
            count = round(said.number("num_clicks", 1, 3, 1))
            return Click(place, said.choice("button", BUTTONS, "left"), count)
        case "RIGHT_CLICK":
            return Click(place, "right")
        case "DOUBLE_CLICK":
            return Click(place, count=2)
        case "MOUSE_DOWN":
            return ButtonDown(said.choice("button", BUTTONS, "left"))
        case "MOUSE_UP":
            return ButtonUp(said.choice("button", BUTTONS, "left"))
        case "DRAG_TO":
            return Drag((grid.view.pointer, said.xy(grid)))
        case "SCROLL":
            most = MAX_SCROLL_PX / NOTCH_PX
            needed = None if not said.has("dx", "dy") else 0.0
            dx, dy = (round(said.number(n, -most, most, needed) * NOTCH_PX) for n in ("dx", "dy"))
            return Scroll(dx, -dy)
        case "TYPING":
            return TypeText(said.text("text"))
        case "PRESS":
            return Key(said.one_key_chord("key"))
        case "KEY_DOWN":
            return KeyDown(said.key("key"))
        case "KEY_UP":
            return KeyUp(said.key("key"))
        case "HOTKEY":
            return Key(said.chord("keys"))
        case name if name in _SPECIAL:
            return _SPECIAL[name]
    raise said.unknown()


def _members(action: Action, grid: Grid) -> dict[str, Any] | None:
    def at(point: tuple[int, int] | None) -> dict[str, Any]:
        return dict(zip("xy", grid.written(point), strict=True)) if point else {}

    match action:
        case Click(point=point, button=button, count=count, modifiers=()):
            return {"action_type": "CLICK", "button": button, **at(point), "num_clicks": count}
        case Move(point=point):
            return {"action_type": "MOVE_TO", **at(point)}
        case Drag(path=(start, end), button="left", modifiers=()) if grid.is_pointer(start):
            return {"action_type": "DRAG_TO", **at(end)}
        case ButtonDown(button=button, point=point) if grid.is_pointer(point):
            return {"action_type": "MOUSE_DOWN", "button": button}
        case ButtonUp(button=button, point=point) if grid.is_pointer(point):
            return {"action_type": "MOUSE_UP", "button": button}
        case Scroll(dx=dx, dy=dy, point=point) if grid.is_pointer(point):
            return {"action_type": "SCROLL", "dx": notches(dx), "dy": notches(-dy)}
        case TypeText(text=text):
            return {"action_type": "TYPING", "text": text}
        case Key(keys=(key,)):
            return {"action_type": "PRESS", "key": written_key(key, "pyautogui")}
        case Key(keys=keys):
            return {"action_type": "HOTKEY", "keys": written_keys(keys, "pyautogui")}
        case KeyDown(key=key):
            return {"action_type": "KEY_DOWN", "key": written_key(key, "pyautogui")}
        case KeyUp(key=key):
            return {"action_type": "KEY_UP", "key": written_key(key, "pyautogui")}
        case Wait():
            return {"action_type": "WAIT"}
        case Finish(success=success):
            return {"action_type": "DONE" if success else "FAIL"}
    return None
