"""AndroidWorld: {"action_type": "click", "x": 100, "y": 200}, after `Reason: …` and `Action:`.

Sources, facts only: google-research/android_world, android_world/env/json_action.py for types and members,
android_world/env/actuation.py for what they do, android_world/agents/m3a.py for the form. Coordinates are
pixels of the screenshot, or an element's `index` where widgets have numbers (`vlrl.envs.gui.marks`).

scroll moves the view by half of the screen in its direction, as a finger from the middle to the edge does,
whatever was tapped before;
swipe draws the finger from edge to edge, and "left" and "right" are the way that actuation.py has them:
"left" draws it from the left edge to the right. input_text types into the field that has the focus and
presses nothing after it: there it first clicks a place and presses enter at the end, which are actions of
their own here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

from vlrl.envs.gui.actions import (
    Action,
    Answer,
    Click,
    Finish,
    Key,
    LongPress,
    OpenApp,
    Pixel,
    Scroll,
    Swipe,
    SystemButton,
    TypeText,
    Wait,
)
from vlrl.envs.gui.codecs.codec import View
from vlrl.envs.gui.codecs.grammar.directions import DIRECTIONS, direction_of, scroll_towards
from vlrl.envs.gui.codecs.grammar.frames import Grid, shown_extent
from vlrl.envs.gui.codecs.grammar.grammar_codec import GrammarCodec
from vlrl.envs.gui.codecs.grammar.json_text import json_text, said_in_object
from vlrl.envs.gui.codecs.grammar.parsed_call import Argument, ParsedAction
from vlrl.envs.gui.marks import mark_at
from vlrl.envs.gui.screen import Form

SWIPE_MS = 500
"""How long a swipe takes there."""

_STATUSES: Mapping[str, bool] = {"complete": True, "infeasible": False}
_TYPES: Mapping[str, str] = {
    "click": '{"action_type": "click", "x": <x>, "y": <y>}: tap a place',
    "double_tap": '{"action_type": "double_tap", "x": <x>, "y": <y>}: tap it twice',
    "long_press": '{"action_type": "long_press", "x": <x>, "y": <y>}: hold a finger on it',
    "scroll": '{"action_type": "scroll", "direction": <up, down, left, right>}: see more of what is that way',
    "swipe": '{"action_type": "swipe", "direction": <up, down, left, right>}: draw a finger over the screen',
    "input_text": '{"action_type": "input_text", "text": <text>}: type into the field that has the focus',
    "keyboard_enter": '{"action_type": "keyboard_enter"}: press enter',
    "navigate_home": '{"action_type": "navigate_home"}: go to the home screen',
    "navigate_back": '{"action_type": "navigate_back"}: go back',
    "open_app": '{"action_type": "open_app", "app_name": <name>}: open an app',
    "wait": '{"action_type": "wait"}: wait for the screen to change',
    "answer": '{"action_type": "answer", "text": <text>}: answer the question',
    "status": '{"action_type": "status", "goal_status": <complete, infeasible>}: done, or impossible',
}
_NAMES = ("index", "x", "y", "text", "direction", "app_name", "goal_status", "keycode", "clear_text")


class AndroidWorldCodec(GrammarCodec):
    """One JSON object with an action_type in small letters."""

    mark_example: ClassVar[str] = '{"action_type": "click", "index": 12}'

    def instructions(self, screen: tuple[int, int], form: Form) -> str:
        """See `Codec`."""
        extent = shown_extent(self._frame, screen)
        corner = f", the bottom right corner is ({extent[0]:g}, {extent[1]:g})"
        types = "\n".join(f"- {line}" for line in _TYPES.values())
        return (
            "You operate an Android phone for a user. You are given the current screenshot and answer with "
            f"one action in JSON. The top left corner of the screen is (0, 0){corner}. Actions:\n{types}\n"
            'Your answer should look like:\nReason: ...\nAction: {"action_type": ...}'
        )

    def _read(self, text: str, grid: Grid) -> Action:
        said = said_in_object(text, "action_type")
        said.check_names(_NAMES)
        return _action(_with_place(said, grid), grid)

    def _written(self, action: Action, grid: Grid) -> str | None:
        members = _members(action, grid)
        return None if members is None else f"Action: {json_text(members)}"


def _with_place(said: ParsedAction, grid: Grid) -> ParsedAction:
    """An element's index as the two numbers of its place."""
    if not said.has("index"):
        return said
    if said.has("x", "y"):
        raise said.wrong("index", "stands beside x and y; give one of them")
    number = said.arguments["index"].value
    try:
        place = grid.mark(number if type(number) is int else 0)
    except ValueError as error:
        raise said.wrong("index", f"is wrong: {error}") from None
    span = said.arguments["index"].span
    left = {name: argument for name, argument in said.arguments.items() if name != "index"}
    return replace(said, arguments=left | {n: Argument(v, span) for n, v in zip("xy", place, strict=True)})


def _action(said: ParsedAction, grid: Grid) -> Action:
    match said.name:
        case "click":
            return Click(said.xy(grid))
        case "double_tap":
            return Click(said.xy(grid), count=2)
        case "long_press":
            return LongPress(said.xy(grid))
        case "scroll":
            way = said.choice("direction", DIRECTIONS)
            return scroll_towards(way, grid.view, _middle(grid.view), max(grid.view.screen))
        case "swipe":
            return said.choice("direction", _swipes(grid.view))
        case "input_text" if said.has("x", "y"):
            raise said.wrong(said.first_of("x", "y"), "is not taken: click the field first, then type")
        case "input_text":
            return TypeText(said.text("text"))
        case "keyboard_enter":
            return Key(("enter",))
        case "navigate_home":
            return SystemButton("home")
        case "navigate_back":
            return SystemButton("back")
        case "open_app":
            return OpenApp(said.text("app_name"))
        case "wait":
            return Wait()
        case "answer":
            return Answer(said.text("text"))
        case "status":
            return Finish(said.choice("goal_status", _STATUSES))
    raise said.unknown()


def _middle(view: View) -> Pixel:
    return view.screen[0] // 2, view.screen[1] // 2


def _swipes(view: View) -> Mapping[str, Swipe]:
    (x, y), (width, height) = _middle(view), view.screen
    right, bottom = width - 1, height - 1
    return {
        "down": Swipe((x, 0), (x, bottom), SWIPE_MS),
        "up": Swipe((x, bottom), (x, 0), SWIPE_MS),
        "left": Swipe((0, y), (right, y), SWIPE_MS),
        "right": Swipe((right, y), (0, y), SWIPE_MS),
    }


def _members(action: Action, grid: Grid) -> dict[str, Any] | None:
    def at(point: tuple[int, int]) -> dict[str, Any]:
        mark = mark_at(grid.view.marks, point)
        return {"index": mark} if mark else dict(zip("xy", grid.written(point), strict=True))

    match action:
        case Click(point=(_, _) as point, button="left", count=1 | 2 as count, modifiers=()):
            return {"action_type": "click" if count == 1 else "double_tap", **at(point)}
        case LongPress(point=point):
            return {"action_type": "long_press", **at(point)}
        case Scroll(point=point) if point in (None, _middle(grid.view)):
            way = direction_of(action)
            return {"action_type": "scroll", "direction": way} if way else None
        case Swipe(start=start, end=end):
            swipes = _swipes(grid.view).items()
            way = next((word for word, swipe in swipes if (swipe.start, swipe.end) == (start, end)), None)
            return {"action_type": "swipe", "direction": way} if way else None
        case TypeText(text=text):
            return {"action_type": "input_text", "text": text}
        case Key(keys=("enter",)) | SystemButton(name="enter"):
            return {"action_type": "keyboard_enter"}
        case SystemButton(name="home" | "back" as name):
            return {"action_type": f"navigate_{name}"}
        case OpenApp(name=name):
            return {"action_type": "open_app", "app_name": name}
        case Wait():
            return {"action_type": "wait"}
        case Answer(text=text):
            return {"action_type": "answer", "text": text}
        case Finish(success=success):
            return {"action_type": "status", "goal_status": "complete" if success else "infeasible"}
    return None
