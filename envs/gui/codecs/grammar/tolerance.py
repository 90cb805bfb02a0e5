"""How much a codec forgives: texts are rewritten as the grammar has them, and then read as strictly as ever.

strict takes what docs/gui_actions.md says and nothing else. published also takes what the grammar's own
published code takes, so that scores compare. lenient also takes the usual slips of models. A repair changes
the form alone: what an action is, and that there is exactly one, the strict codec says. Nothing is evaluated.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from vlrl.envs.action_text import CLOSING, OPENING
from vlrl.envs.gui.actions import Action, Pixel
from vlrl.envs.gui.codecs.codec import ActionError, Codec, View
from vlrl.envs.gui.codecs.grammar.json_text import json_text
from vlrl.envs.gui.codecs.grammar.numbers_text import in_call, in_members, in_ui_tars, in_words
from vlrl.envs.gui.codecs.grammar.parts import action_part, tagged_part
from vlrl.envs.gui.codecs.osworld_pyautogui import statements
from vlrl.envs.gui.codecs.plain import VERBS, without_modifiers
from vlrl.envs.gui.screen import Form
from vlrl.parsing.literals import read_literal
from vlrl.parsing.strict_json import Unreadable
from vlrl.parsing.tool_calls import read_json, thinking_ends

Tolerance = Literal["strict", "published", "lenient"]
TOLERANCES: tuple[Tolerance, ...] = ("strict", "published", "lenient")
MAX_CHARS = 10_000
"""Longest text that is repaired."""
REPAIRABLE = ("no_action", "syntax", "missing_argument", "bad_argument")
"""Kinds of errors that may be of the form; an unknown action and a place outside are not."""

_QWEN = ("qwen2_5_computer_use", "qwen3_computer_use", "qwen2_5_mobile_use", "qwen3_mobile_use")
TAGS: Mapping[str, tuple[str, str]] = {
    "plain": (OPENING, CLOSING),
    "gui_r1": ("<answer>", "</answer>"),
    **dict.fromkeys(_QWEN, ("<tool_call>", "</tool_call>")),
}
OBJECTS = ("computer_13", "androidworld", "miniwob")
_NUMBER = r"-?[0-9]{1,6}(?:\.[0-9]{1,6})?"
_PLACE = re.compile(
    rf"(?:<point>|<\|box_start\|>)?[(\[]?\s*({_NUMBER})[\s,]+({_NUMBER})\s*[)\]]?(?:</point>|<\|box_end\|>)?"
)
_SLEEP = re.compile(rf"time\.sleep\(\s*{_NUMBER}\s*\)")
_TOOL = '<tool_call>{"name": "%s", "arguments": {"action": "%s", "coordinate": [X, Y]}}</tool_call>'
_CLICKS: Mapping[str, str] = {
    "plain": "<action>click X Y</action>",
    "uitars": "Action: click(start_box='(X,Y)')",
    "uitars_1_5": "Action: click(start_box='(X,Y)')",
    "gui_r1": "<answer>[{'action': 'click', 'point': [X, Y]}]</answer>",
    "osworld_pyautogui": "pyautogui.click(X, Y)",
    "browsergym": "mouse_click(X, Y)",
    "computer_13": '{"action_type": "CLICK", "x": X, "y": Y}',
    "androidworld": '{"action_type": "click", "x": X, "y": Y}',
    "miniwob": '{"action_type": "CLICK_COORDS", "coords": [X, Y]}',
    **dict.fromkeys(_QWEN[:2], _TOOL % ("computer_use", "left_click")),
    **dict.fromkeys(_QWEN[2:], _TOOL % ("mobile_use", "click")),
}


def _sleeps(grammar: str, text: str) -> str | None:
    """One pyautogui call with pauses around it: OSWorld runs them all, here the environment waits itself."""
    if grammar != "osworld_pyautogui":
        return None
    calls = statements(text, action_part(text))
    others = [call for call in calls if not _SLEEP.fullmatch(text[slice(*call.span)])]
    return text[slice(*others[0].span)] if len(others) == 1 < len(calls) else None


def _closing(grammar: str, text: str) -> str | None:
    """A tag that is not closed, as where its end stops the sampling; UI-TARS' bracket."""
    if grammar.startswith("uitars"):
        start, end = action_part(text)
        return f"{text[:end]})" if text[start:end].count("(") > text[start:end].count(")") else None
    opening, closing = TAGS.get(grammar, ("", ""))
    rest = text[thinking_ends(text) :]
    is_open = opening and rest.count(opening) == 1 and closing not in rest
    return f"{text.rstrip()}{closing}" if is_open else None


def _object(grammar: str, text: str) -> str | None:
    """AndroidWorld's agent takes the one {…} of a text, as JSON or as a Python literal."""
    found = re.findall(r"\{[^{}]*\}", text[slice(*action_part(text))])
    return _written(read_literal(found[0])) if grammar == "androidworld" and len(found) == 1 else None


def _tags(grammar: str, text: str) -> str | None:
    """The bare action without its tags: a JSON object or list, a line of `plain`."""
    opening, closing = TAGS.get(grammar, ("", ""))
    start, end = action_part(text)
    part = text[start:end]
    if not opening or opening in part or closing in part:
        return None
    if grammar == "plain":
        is_line = "\n" not in part and without_modifiers(part.split()[0])[1] in VERBS
        return f"{opening}{part}{closing}" if is_line else None
    if grammar in _QWEN:
        value: Any = read_json(part)
        if isinstance(value, dict) and "arguments" not in value and "action" in value:
            name = "computer_use" if "computer" in grammar else "mobile_use"
            part = _written({"name": name, "arguments": value})
    return f"{opening}{part}{closing}"


def _numbers(grammar: str, text: str) -> str | None:
    """Places written as texts: "120", "(120, 240)", ["120", "240"], (120, 240)."""
    if grammar == "plain":
        start, end = tagged_part(text, *TAGS["plain"])
        return text[:start] + in_words(text[start:end]) + text[end:]
    if grammar in TAGS:
        start, end = tagged_part(text, *TAGS[grammar])
        value = (read_literal if grammar == "gui_r1" else read_json)(text[start:end].strip())
        return f"{TAGS[grammar][0]}{_written(in_members(value))}{TAGS[grammar][1]}"
    start, end = action_part(text)
    if grammar in OBJECTS:
        return _written(in_members(read_json(text[start:end])))
    if grammar.startswith("uitars"):
        return text[:start] + in_ui_tars(text[start:end]) + text[end:]
    return in_call(text[start:end])


def _place(grammar: str, text: str) -> str | None:
    """Nothing but a place, as models write that were trained on grounding: a click there."""
    found = _PLACE.fullmatch(text[slice(*action_part(text))])
    return found and _CLICKS[grammar].replace("X", found[1]).replace("Y", found[2])


def _written(value: Any) -> str:
    try:
        return json_text(value)
    except (TypeError, ValueError):  # a call, or a number that is not finite
        raise Unreadable("no JSON") from None


class Repair(NamedTuple):
    """A way to rewrite a text; `published` are the grammars whose own code takes it as it is."""

    rewrite: Callable[[str, str], str | None]
    published: tuple[str, ...] = ()


REPAIRS: Mapping[str, Repair] = {
    "sleeps": Repair(_sleeps, ("osworld_pyautogui",)),
    "closing": Repair(_closing, (*_QWEN, "uitars", "uitars_1_5")),
    "object": Repair(_object, ("androidworld",)),
    "tags": Repair(_tags),
    "numbers": Repair(_numbers),
    "place": Repair(_place),
}
"""In the order in which they are tried, one upon the other."""


@dataclass(frozen=True, slots=True)
class Reading:
    """An action, and the names of the repairs that its text took; () of one that the grammar says."""

    action: Action
    repairs: tuple[str, ...] = ()


class TolerantCodec:
    """A codec that repairs what it cannot read; see the module."""

    def __init__(self, codec: Codec, tolerance: Tolerance) -> None:
        self.name, self.mark_example, self._codec = codec.name, codec.mark_example, codec
        self._grammar = codec.name.partition("@")[0]
        self._repairs = {
            name: repair.rewrite
            for name, repair in REPAIRS.items()
            if tolerance == "lenient" or (tolerance == "published" and self._grammar in repair.published)
        }

    def instructions(self, screen: tuple[int, int], form: Form) -> str:
        """See `Codec`."""
        return self._codec.instructions(screen, form)

    def place(self, pixel: Pixel, view: View) -> str:
        """See `Codec`."""
        return self._codec.place(pixel, view)

    def format(self, action: Action, view: View) -> str:
        """See `Codec`."""
        return self._codec.format(action, view)

    def parse(self, text: str, view: View) -> Action:
        """See `Codec`."""
        return self.read(text, view).action

    def read(self, text: str, view: View) -> Reading:
        """The action in a model's text, and what had to be repaired.

        Raises:
            ActionError: if there is none; of the text as it is.
        """
        try:
            return Reading(self._codec.parse(text, view))
        except ActionError as error:
            if error.kind in REPAIRABLE and len(text) <= MAX_CHARS:
                reading = self._repaired(text, view)
                if reading is not None:
                    return reading
            raise

    def _repaired(self, text: str, view: View) -> Reading | None:
        used: tuple[str, ...] = ()
        for name, rewrite in self._repairs.items():
            try:
                written = rewrite(self._grammar, text)
            except (ActionError, Unreadable):
                continue
            if written is not None and written != text:
                text, used = written, (*used, name)
                try:
                    return Reading(self._codec.parse(text, view), used)
                except ActionError:
                    continue
        return None
