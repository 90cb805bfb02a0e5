"""Coordinates that a model wrote as texts, written as its grammar has them: for `tolerance`."""

from __future__ import annotations

import re
from typing import Any

_NUMBER = r"-?[0-9]{1,6}(?:\.[0-9]{1,6})?"
_ONE = re.compile(rf"\s*({_NUMBER})\s*(?:px)?\s*")
_TWO = re.compile(rf"\s*[(\[]?\s*({_NUMBER})\s*[,\s]\s*({_NUMBER})\s*[)\]]?\s*")
_PLACES = ("coordinate", "coordinate2", "coords", "point")
_NUMBERS = ("x", "y", "dx", "dy", "pixels", "time", "num_clicks")
_TEXT_VERBS = re.compile(r"\s*(?:type|key|key_down|key_up|open|answer)\b")
_AXIS = re.compile(r"\b[xy]\d?\s*[=:]")
_BRACKETS = str.maketrans("()[],", "     ")

# A call whose arguments are places: those that take a text are left alone.
_CALL = re.compile(
    r"\s*(?:pyautogui\.)?(?:\w*[cC]lick|moveTo|dragTo|mouseDown|mouseUp|mouse_move|mouse_down|mouse_up"
    r"|mouse_dblclick|mouse_drag_and_drop)\("
)
_QUOTED = re.compile(rf"""(['"])[(\[]?\s*({_NUMBER}(?:\s*,\s*{_NUMBER})?)\s*[)\]]?\1""")
_BRACKETED = re.compile(rf"[(\[]\s*({_NUMBER}\s*,\s*{_NUMBER})\s*[)\]]")

_UI_TARS = re.compile(r"(click|left_double|right_single|left_single|hover|long_press|scroll|drag|select)\(")
_BARE = re.compile(rf"=\s*([(\[]\s*{_NUMBER}[\s,]+{_NUMBER}\s*[)\]])")
_ALONE = re.compile(rf"(\w+)\(\s*([(\[]?\s*{_NUMBER}[\s,]+{_NUMBER}\s*[)\]]?)\s*\)")


def in_members(value: Any) -> Any:
    """A mapping, list or call of such with the numbers of its places as numbers."""
    if isinstance(value, list):
        return [in_members(one) for one in value]
    if not isinstance(value, dict):
        return value
    return {
        key: _place(one) if key in _PLACES else _number(one) if key in _NUMBERS else in_members(one)
        for key, one in value.items()
    }


def in_words(text: str) -> str:
    """An action of `plain`: click (312, 240), click x=312 y=240."""
    if _TEXT_VERBS.match(text):
        return text
    return _AXIS.sub(" ", text).translate(_BRACKETS)


def in_call(text: str) -> str:
    """A call such as click("100", "200") or click((100, 200))."""
    head = _CALL.match(text)
    if head is None:
        return text
    rest = _QUOTED.sub(lambda found: found[2], text[head.end() :])
    return text[: head.end()] + _BRACKETED.sub(lambda found: found[1], rest)


def in_ui_tars(text: str) -> str:
    """A call such as click(start_box=(100, 200)) or click(100, 200)."""
    if not _UI_TARS.match(text):
        return text
    alone = _ALONE.fullmatch(text)
    if alone is not None:
        return f"{alone[1]}(start_box='{alone[2].strip()}')"
    return _BARE.sub(lambda found: f"='{found[1]}'", text)


def _number(value: Any) -> Any:
    found = _ONE.fullmatch(value) if isinstance(value, str) else None
    return value if found is None else _read(found[1])


def _place(value: Any) -> Any:
    if isinstance(value, list):
        return [_number(one) for one in value]
    if isinstance(value, dict) and set(value) == {"x", "y"}:
        return [_number(value["x"]), _number(value["y"])]
    found = _TWO.fullmatch(value) if isinstance(value, str) else None
    return value if found is None else [_read(found[1]), _read(found[2])]


def _read(number: str) -> float:
    return float(number) if "." in number else int(number)
