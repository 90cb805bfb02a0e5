"""One action of a GUI agent, as models write them and as datasets answer them, in common words.

Read are, each also in a ``` fence:

    JSON           {"action": "left_click", "coordinate": [x, y]}, a list of one such,
                   {"name": "computer_use", "arguments": {…}}, also within <tool_call>…</tool_call>
    Python dict    [{'action': 'type', 'point': [x, y], 'input_text': 'headphones'}]       GUI-R1, UI-R1
    call           click(start_box='<|box_start|>(x,y)<|box_end|>'), scroll(direction='down')      UI-TARS
                   pyautogui.click(x, y), pyautogui.write('text'), pyautogui.hotkey('ctrl', 'c')

Different names of one thing become one: left_click is click, input_text is text. Two actions, two names of
one argument in one action, an argument without a known name, and text around the action are refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from vlrl.coordinates import Box, Point
from vlrl.parsing.literals import Call, read_literal
from vlrl.parsing.places import boxes_of, point_of, read_point
from vlrl.parsing.strict_json import Unreadable, strict_json, unfenced

Place: TypeAlias = Point | Box

NO_TEXT = ("", "no input text")
"""What stands for no text in GUI-R1's form."""

ALIASES: Mapping[str, str] = {
    alias: kind
    for kind, aliases in {
        "click": "click left_click tap leftclick",
        "double_click": "double_click left_double doubleclick double_tap",
        "triple_click": "triple_click tripleclick",
        "right_click": "right_click right_single rightclick",
        "middle_click": "middle_click middleclick",
        "long_press": "long_press longpress long_tap",
        "move": "move mouse_move moveto hover",
        "drag": "drag left_click_drag dragto",
        "type": "type input_text write typewrite type_text",
        "key": "key hotkey press keypress press_key",
        "scroll": "scroll vscroll",
        "open_app": "open_app open",
        "wait": "wait sleep",
        "finish": "finish finished terminate complete done status",
        "back": "back press_back navigate_back",
        "home": "home press_home navigate_home",
        "enter": "enter press_enter keyboard_enter",
    }.items()
    for alias in aliases.split()
}
"""What models call an action → what it is called here; a name that is not here stays as it is."""

PLACED = frozenset(
    ("click", "double_click", "triple_click", "right_click", "middle_click", "long_press", "move", "drag")
)
"""Actions at a place; of others a place is not compared."""

_NAMES: Mapping[str, str] = {
    alias: name
    for name, aliases in {
        "point": "point coordinate start_box start_point point_2d position gt_bbox bbox bbox_2d box",
        "end": "end end_box end_point end_coordinate coordinate2",
        "text": "text content input_text value app_name app url",
        "direction": "direction",
        "keys": "keys key",
        "button": "button",
        "status": "status goal_status",
        "amount": "amount pixels clicks",
        "seconds": "seconds time t duration",
    }.items()
    for alias in aliases.split()
}
_NAME = re.compile(r"[a-z][a-z0-9_/]{0,40}")
_TOOL_CALL = ("<tool_call>", "</tool_call>")
CLICKS: Mapping[tuple[str, str], str] = {
    ("left", "1"): "click",
    ("left", "2"): "double_click",
    ("left", "3"): "triple_click",
    ("right", "1"): "right_click",
    ("middle", "1"): "middle_click",
}
"""(button, number of clicks) → which click it is; no other is an action."""
_FOLDED = frozenset(("direction", "keys", "button", "status"))


@dataclass(frozen=True, slots=True)
class Action:
    """An action in common words.

    Attributes:
        kind: a value of ALIASES, or the name itself in small letters.
        places: "point", "end" → where; a box only in a sample's answer.
        arguments: the others: text, direction, keys, button, status, amount, seconds.
    """

    kind: str
    places: Mapping[str, Place] = field(default_factory=dict)
    arguments: Mapping[str, str] = field(default_factory=dict)


def read_action(text: str) -> Action:
    """The action of a text that is nothing but one action.

    Raises:
        Unreadable: if the text is anything else.
    """
    text = unfenced(text)
    if text.startswith(_TOOL_CALL[0]) and text.endswith(_TOOL_CALL[1]):
        text = text[len(_TOOL_CALL[0]) : -len(_TOOL_CALL[1])].strip()
    try:
        value = strict_json(text)
    except Unreadable:
        value = read_literal(text)
    return action_of(value)


def action_of(value: Any) -> Action:
    """The action of a mapping, of a list of one, or of a call.

    Raises:
        Unreadable: if it is anything else.
    """
    if isinstance(value, Call):
        return _of_call(value)
    if isinstance(value, Sequence) and not isinstance(value, str) and len(value) == 1:
        value = value[0]
    if not isinstance(value, Mapping):
        raise Unreadable("an action is a mapping, a list of one mapping, or a call")
    if value.keys() == {"name", "arguments"} and isinstance(value["arguments"], Mapping):
        value = {"action": value["name"], **value["arguments"]}  # its own action, if it names one
    if not isinstance(value.get("action"), str):
        raise Unreadable("the mapping has no text under 'action'")
    return _action(value["action"], {str(k): v for k, v in value.items() if k != "action"})


def _of_call(call: Call) -> Action:
    name = call.name.removeprefix("pyautogui.")
    kind = ALIASES.get(name.lower(), name.lower())
    named = dict(call.named)
    if "x" in named and "y" in named:
        named["point"] = _once(named, "point", [named.pop("x"), named.pop("y")])
    given = call.positional
    if len(given) == 1 and isinstance(given[0], list):
        given = given[0]
    if not given:
        return _action(name, named)
    if len(given) == 2 and all(isinstance(n, int | float) and not isinstance(n, bool) for n in given):
        named["point"] = _once(named, "point", given)
    elif kind == "key" and all(isinstance(key, str) for key in given):
        named["keys"] = _once(named, "keys", given)
    elif len(given) == 1 and isinstance(given[0], str):
        named["text"] = _once(named, "text", given[0])
    elif len(given) == 1 and kind in ("scroll", "hscroll", "wait"):
        named["seconds" if kind == "wait" else "amount"] = given[0]
    else:
        raise Unreadable(f"{len(given)} unnamed arguments of {kind}")
    return _action(name, named)


def _once(named: Mapping[str, Any], key: str, value: Any) -> Any:
    if key in named:
        raise Unreadable(f"{key} is given twice")
    return value


def _action(name: str, given: Mapping[str, Any]) -> Action:
    name = name.strip().lower()
    if not _NAME.fullmatch(name):
        raise Unreadable(f"{name!r:.60} is not an action's name")
    kind = ALIASES.get(name, name)
    places: dict[str, Place] = {}
    arguments: dict[str, str] = {}
    for key, value in given.items():
        known = _NAMES.get(key)
        if known is None:
            raise Unreadable(f"{key!r:.60} is not an argument of an action")
        if value is None or (known == "text" and value in NO_TEXT):
            continue
        if known in places or known in arguments:
            raise Unreadable(f"{known} is given twice")
        if known in ("point", "end"):
            if kind in PLACED or kind in ("scroll", "swipe"):
                places[known] = _place(value)
        else:
            arguments[known] = _argument(known, value)
    if kind in ("scroll", "swipe") and "direction" not in arguments:
        _add_direction(arguments)
    if kind == "click":
        kind = _pressed(arguments)
    return Action(kind, places, arguments)


def _pressed(arguments: dict[str, str]) -> str:
    """Which click one with a button or a number of clicks is: pyautogui has but one word for all of them."""
    pressed = (arguments.pop("button", "left"), arguments.pop("amount", "1"))
    if pressed not in CLICKS:
        raise Unreadable(f"{pressed} is not a click")
    return CLICKS[pressed]


def _add_direction(arguments: dict[str, str]) -> None:
    """GUI-R1 writes a scroll's direction as text; pyautogui and Qwen give its amount a sign, up above 0."""
    if "text" in arguments:
        arguments["direction"] = arguments.pop("text").casefold()
    elif "amount" in arguments and float(arguments["amount"]):
        arguments["direction"] = "up" if float(arguments["amount"]) > 0 else "down"


def _place(value: Any) -> Place:
    if isinstance(value, str):
        return read_point(value)
    if isinstance(value, Sequence) and len(value) == 4:
        return boxes_of(value)[0].box
    return point_of(value)


def _argument(name: str, value: Any) -> str:
    if name in ("amount", "seconds"):
        return _amount(value)
    if name == "keys" and isinstance(value, list) and all(isinstance(key, str) for key in value):
        value = " ".join(value)
    if not isinstance(value, str):
        raise Unreadable(f"{name} is not text")
    text: str = value.strip()
    if name == "keys":
        text = " ".join(text.replace("+", " ").split()) or text
    return text.casefold() if name in _FOLDED else text


def _amount(value: Any) -> str:
    try:
        number = float(value) if isinstance(value, int | float | str) else float("nan")
    except (ValueError, OverflowError):
        number = float("nan")
    if not abs(number) <= 1e6:
        raise Unreadable("an amount is a number of at most a million")
    return f"{number:g}"
