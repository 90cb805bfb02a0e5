"""Several actions in one message: it is cut into texts of one action each, in the order they are done.

Each grammar keeps its own form: tags around every action, a JSON list, calls one after the other (a pyautogui
program is read, never run), UI-TARS' actions with a blank line between them. The pointer that a drag or a
scroll starts at is where the action before leaves it; places are those of the one screenshot.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from vlrl.envs.gui.actions import points_of
from vlrl.envs.gui.codecs.codec import ActionError, View
from vlrl.envs.gui.codecs.grammar.json_text import json_text
from vlrl.envs.gui.codecs.grammar.parts import action_part
from vlrl.envs.gui.codecs.grammar.tolerance import OBJECTS, TAGS, Reading, TolerantCodec
from vlrl.envs.gui.codecs.osworld_pyautogui import statements
from vlrl.parsing.literals import read_literal
from vlrl.parsing.strict_json import Unreadable
from vlrl.parsing.tool_calls import read_json, thinking_ends

_CALLS = ("osworld_pyautogui", "browsergym")


def read_several(codec: TolerantCodec, text: str, view: View, most: int) -> list[Reading]:
    """The actions of a message, at least one.

    Args:
        codec: its grammar.
        text: the model's.
        view: what the model saw.
        most: actions that a message may have; with 1 it is read as the codec alone reads it.

    Raises:
        ActionError: if one of them is none, or there are more.
    """
    if most == 1:
        return [codec.read(text, view)]
    texts = _texts(codec.name.partition("@")[0], text)
    if len(texts) > most:
        reason = f"{len(texts)} actions in one message; {most} are allowed"
        raise ActionError("syntax", reason, (0, len(text)))
    readings = []
    for part in texts:
        readings.append(codec.read(part, view))
        points = points_of(readings[-1].action)
        view = replace(view, pointer=points[-1]) if points else view
    return readings


def _texts(grammar: str, text: str) -> list[str]:
    """The texts of a message's actions; the message itself where its form is not that of several."""
    try:
        if grammar in _CALLS:
            found = _calls(text)
        elif grammar.startswith("uitars"):
            found = [f"Action: {part}" for part in _part(text).split("\n\n") if part.strip()]
        elif grammar in OBJECTS:
            found = _members(read_json(_part(text)), json_text)
        elif grammar == "gui_r1":
            found = _literals(text)
        else:
            found = _tagged(text, *TAGS[grammar])
    except (ActionError, Unreadable):
        return [text]
    return found if len(found) > 1 else [text]


def _part(text: str) -> str:
    return text[slice(*action_part(text))]


def _calls(text: str) -> list[str]:
    span = action_part(text)
    found = statements(text, span)
    if found and text[found[-1].span[1] : span[1]].strip(" \t\r\n;"):
        return []  # more than are looked at, or something else
    return [text[slice(*call.span)] for call in found]


def _tagged(text: str, opening: str, closing: str) -> list[str]:
    pattern = re.compile(f"{re.escape(opening)}.*?{re.escape(closing)}", re.DOTALL)
    return pattern.findall(text, thinking_ends(text))


def _literals(text: str) -> list[str]:
    opening, closing = TAGS["gui_r1"]
    (answer,) = _tagged(text, opening, closing) or [opening + closing]
    value = read_literal(answer[len(opening) : -len(closing)].strip())
    return _members(value, lambda member: f"{opening}[{member!r}]{closing}")


def _members(value: Any, write: Any) -> list[str]:
    is_list = isinstance(value, list) and all(isinstance(member, dict) for member in value)
    return [write(member) for member in value] if is_list else []
