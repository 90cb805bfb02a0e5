"""Typed actions as calls of BrowserGym's action set: [function, arguments], done in their order.

Sources, facts only: ServiceNow/BrowserGym, browsergym/core/src/browsergym/core/action/functions.py. Its
coordinates are pixels of the screenshot, whatever the scale of the page.

A page without a window around it has no keys for its tabs and its history. Those of a desktop browser stand
for BrowserGym's functions: Ctrl+T, Ctrl+W, Ctrl+Tab, Ctrl+1 to Ctrl+9, Alt+Left and Alt+Right.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, assert_never

from vlrl.envs.adapters.contents import sendable
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
from vlrl.envs.gui.codecs.grammar.keys import written_key, written_keys

Call: TypeAlias = tuple[str, list[Any]]
MAX_WAIT_MS = 10_000
"""Longest wait of an action: real time, in which a call must return."""


@dataclass(frozen=True, slots=True)
class Standing:
    """Where things are before an action.

    Attributes:
        pointer: where the mouse is.
        tab: index of the page that is shown.
        num_tabs: pages that are open.
        max_wait_ms: longest wait that an action may take.
    """

    pointer: Pixel
    tab: int
    num_tabs: int
    max_wait_ms: int


def calls_of(action: Action, at: Standing) -> list[Call]:
    """An action as calls.

    Raises:
        ActionError: for one that BrowserGym's set has no function for.
    """
    match action:
        case Move(point):
            return [("mouse_move", [*point])]
        case Click(point, button, 1 | 2 as count, modifiers):
            click: Call = (
                "mouse_click" if count == 1 else "mouse_dblclick",
                [*(point or at.pointer), button],
            )
            return _held(modifiers, [click])
        case ButtonDown(button, point):
            return [("mouse_down", [*(point or at.pointer), button])]
        case ButtonUp(button, point):
            return [("mouse_up", [*(point or at.pointer), button])]
        case Drag((start, end), "left", ()):
            return [("mouse_drag_and_drop", [*start, *end])]
        case Drag(path, button, modifiers):
            moves: list[Call] = [("mouse_move", [*point]) for point in path[1:-1]]
            drag: list[Call] = [("mouse_down", [*path[0], button]), *moves, ("mouse_up", [*path[-1], button])]
            return _held(modifiers, drag)
        case Scroll(dx, dy, point):
            return [("scroll_at", [*(point or at.pointer), dx, dy])]
        case TypeText(text):
            return [("keyboard_type", [sendable(text)])]
        case Key(keys):
            return [_shortcut(keys, at) or ("keyboard_press", ["+".join(written_keys(keys, "playwright"))])]
        case KeyDown(key):
            return [("keyboard_down", [written_key(key, "playwright")])]
        case KeyUp(key):
            return [("keyboard_up", [written_key(key, "playwright")])]
        case Wait(duration_ms):
            return [("noop", [min(duration_ms, at.max_wait_ms, MAX_WAIT_MS)])]
        case SystemButton("back"):
            return [("go_back", [])]
        case SystemButton("enter"):
            return [("keyboard_press", ["Enter"])]
        case Answer(text):
            return [("send_msg_to_user", [sendable(text)])]
        case Finish(success):
            return [("send_msg_to_user", [""]) if success else ("report_infeasible", [""])]
        case Click() | LongPress() | Swipe() | SystemButton() | OpenApp():
            raise ActionError("unknown_action", f"BrowserGym cannot {action!r:.80}", (0, 0))
        case _:
            assert_never(action)


def pointer_after(action: Action, pointer: Pixel) -> Pixel:
    """Where an action leaves the mouse."""
    match action:
        case Drag(path):
            return path[-1]
        case (
            Move(point) | Click(point) | ButtonDown(point=point) | ButtonUp(point=point) | Scroll(point=point)
        ):
            return point or pointer
        case _:
            return pointer


def _held(modifiers: Sequence[str], calls: Sequence[Call]) -> list[Call]:
    """Calls while keys are held."""
    keys = written_keys(modifiers, "playwright")
    downs: list[Call] = [("keyboard_down", [key]) for key in keys]
    ups: list[Call] = [("keyboard_up", [key]) for key in reversed(keys)]
    return [*downs, *calls, *ups]


def _shortcut(keys: tuple[str, ...], at: Standing) -> Call | None:
    """What a desktop browser does at a chord, if it is one of its tabs or its history."""
    match keys:
        case ("alt", "left"):
            return "go_back", []
        case ("alt", "right"):
            return "go_forward", []
        case ("ctrl", "t"):
            return "new_tab", []
        case ("ctrl", "w"):
            return "tab_close", []
        case ("ctrl", "tab"):
            return "tab_focus", [(at.tab + 1) % at.num_tabs]
        case ("ctrl", "shift", "tab") | ("shift", "ctrl", "tab"):
            return "tab_focus", [(at.tab - 1) % at.num_tabs]
        case ("ctrl", digit) if digit.isdigit() and 1 <= int(digit) <= at.num_tabs:
            return "tab_focus", [int(digit) - 1]
        case _:
            return None
