"""GUI-R1: <answer>[{'action': 'click', 'point': [123, 300], 'input_text': 'no input text'}]</answer>.

Sources, facts only: ritzz-ai/GUI-R1, guir1/inference/inference_vllm_android.py and its siblings for desktop
and web (the lists of actions differ by data set; all of them are read), verl/utils/reward_score/r1gui.py
for the form. The answer is a Python list of one dictionary; its authors evaluate it, here it is read as a
literal. Points are pixels of the image as it was given to the model; [-100, -100] stands for none.

A scroll says its direction in input_text and goes by half of the screen, at most five notches; hotkey says
its keys there. `select` and `close/delete` name no input that a mouse or keyboard could give and are refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vlrl.envs.gui.actions import (
    Action,
    Button,
    Click,
    Finish,
    Key,
    LongPress,
    Move,
    OpenApp,
    Pixel,
    Scroll,
    SystemButton,
    TypeText,
    Wait,
)
from vlrl.envs.gui.codecs.codec import ActionError
from vlrl.envs.gui.codecs.grammar.directions import DIRECTIONS, direction_of, scroll_towards
from vlrl.envs.gui.codecs.grammar.escapes import python_text
from vlrl.envs.gui.codecs.grammar.frames import Grid
from vlrl.envs.gui.codecs.grammar.grammar_codec import GrammarCodec
from vlrl.envs.gui.codecs.grammar.json_text import parsed_action
from vlrl.envs.gui.codecs.grammar.keys import named_plus, written_keys
from vlrl.envs.gui.codecs.grammar.parsed_call import ParsedAction
from vlrl.envs.gui.codecs.grammar.parts import stripped, tagged_part
from vlrl.envs.gui.screen import Form
from vlrl.parsing.literals import read_literal
from vlrl.parsing.strict_json import Unreadable

OPENING, CLOSING = "<answer>", "</answer>"
NO_TEXT = "no input text"
NO_POINT = [-100, -100]

_CLICKS: Mapping[str, tuple[Button, int]] = {
    "click": ("left", 1),
    "doubleclick": ("left", 2),
    "rightclick": ("right", 1),
}
_KEYS: Mapping[str, str] = {
    "press_enter": "enter",
    "enter": "enter",
    "press_tab": "tab",
    "press_down": "down",
    "press_space": "space",
}
_DESKTOP = ("click", "doubleclick", "rightclick", "moveto", "type", "scroll", "hotkey", *list(_KEYS)[2:])
_DESKTOP = (*_DESKTOP, "press_enter", "wait", "complete")
_MOBILE = (
    "wait",
    "long_press",
    "click",
    "press_back",
    "press_home",
    "type",
    "open_app",
    "scroll",
    "complete",
)
_WITH_TEXT = ("type", "open_app", "scroll", "hotkey")


class GuiR1Codec(GrammarCodec):
    """A list of one dictionary between answer tags."""

    def instructions(self, screen: tuple[int, int], form: Form) -> str:
        """See `Codec`."""
        names = _MOBILE if form == "mobile" else _DESKTOP
        texts = [name for name in _WITH_TEXT if name in names]
        return (
            "You are GUI-R1, a GUI agent that reasons. For the screenshot, give the action to perform "
            f"(one of {list(names)}), the point for the pointer (whole numbers) if there is one, and "
            "any input text that the action needs.\n"
            "Put your thinking in <think> </think> tags and the final answer in <answer> </answer> tags:\n"
            f"<think> ... </think> <answer>[{{'action': enum{list(names)}, 'point': [x, y], "
            f"'input_text': '{NO_TEXT} [default]'}}]</answer>\n"
            f"{texts} need an input text. Examples:\n"
            f"[{{'action': 'click', 'point': [123, 300], 'input_text': '{NO_TEXT}'}}]\n"
            f"[{{'action': 'type', 'point': {NO_POINT}, 'input_text': 'shopping mall'}}]\n"
            f"[{{'action': 'scroll', 'point': {NO_POINT}, 'input_text': enum{list(DIRECTIONS)}}}]\n"
            f"[{{'action': 'complete', 'point': {NO_POINT}, 'input_text': '{NO_TEXT}'}}]"
        )

    def _read(self, text: str, grid: Grid) -> Action:
        return _action(_said(text), grid)

    def _written(self, action: Action, grid: Grid) -> str | None:
        said = _parts(action)
        if said is None:
            return None
        name, point, text = said
        place = [int(n) if n == int(n) else n for n in grid.written(point)] if point else NO_POINT
        return (
            f"{OPENING}[{{'action': '{name}', 'point': {place}, 'input_text': {python_text(text)}}}]{CLOSING}"
        )


def _said(text: str) -> ParsedAction:
    span = stripped(text, tagged_part(text, OPENING, CLOSING))
    try:
        value: Any = read_literal(text[slice(*span)])
    except Unreadable:
        raise ActionError("syntax", "the answer is no list of one dictionary", span) from None
    if isinstance(value, list) and len(value) == 1:
        (value,) = value
    if not isinstance(value, dict):
        raise ActionError("syntax", "the answer is no list of one dictionary", span)
    said = parsed_action(text, span, value, "action")
    said.check_names(("point", "input_text"))
    return said.without("input_text", NO_TEXT)


def _action(said: ParsedAction, grid: Grid) -> Action:
    match said.name:
        case name if name in _CLICKS:
            return Click(said.point("point", grid), *_CLICKS[name])
        case name if name in _KEYS:
            return Key((_KEYS[name],))
        case "moveto":
            return Move(said.point("point", grid))
        case "long_press":
            return LongPress(said.point("point", grid))
        case "type":
            return TypeText(said.text("input_text"))
        case "hotkey":
            return Key(said.chord("input_text", separator=" "))
        case "scroll":
            point = said.point("point", grid) if said.without("point", NO_POINT).has("point") else None
            return scroll_towards(said.choice("input_text", DIRECTIONS), grid.view, point)
        case "open_app":
            return OpenApp(said.text("input_text"))
        case "press_home":
            return SystemButton("home")
        case "press_back":
            return SystemButton("back")
        case "wait":
            return Wait()
        case "complete":
            return Finish(True)
    raise said.unknown()


def _parts(action: Action) -> tuple[str, Pixel | None, str] | None:
    """(action, point, input_text)."""
    match action:
        case Click(point=(_, _) as point, button=button, count=count, modifiers=()):
            name = next((name for name, click in _CLICKS.items() if click == (button, count)), None)
            return (name, point, NO_TEXT) if name else None
        case Move(point=point):
            return "moveto", point, NO_TEXT
        case LongPress(point=point):
            return "long_press", point, NO_TEXT
        case TypeText(text=text) if text != NO_TEXT:
            return "type", None, text
        case Key(keys=(key,)) if key in _KEYS.values():
            return next(name for name, k in _KEYS.items() if k == key), None, NO_TEXT
        case Key(keys=keys):
            return "hotkey", None, "+".join(map(named_plus, written_keys(keys, "pyautogui")))
        case Scroll(point=point):
            way = direction_of(action)
            return ("scroll", point, way) if way else None
        case OpenApp(name=name):
            return "open_app", None, name
        case SystemButton(name="home" | "back" as name):
            return f"press_{name}", None, NO_TEXT
        case Wait():
            return "wait", None, NO_TEXT
        case Finish(success=True):
            return "complete", None, NO_TEXT
    return None
