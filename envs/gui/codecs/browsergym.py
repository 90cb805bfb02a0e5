"""BrowserGym's functions with coordinates: mouse_click(100, 200), keyboard_press('Control+a').

Sources, facts only: ServiceNow/BrowserGym, browsergym/core/src/browsergym/core/action/functions.py for
names and parameters, highlevel.py for the subsets: read are `coord`, `chat`, `infeas` and noop. There a
text is run with exec; here it is read. Functions that take an element's bid, a URL, a tab or a file are
refused.

Coordinates are pixels of the screenshot. scroll acts where the pointer is. send_msg_to_user answers; there
being no word for "done", an empty message is it. report_infeasible gives up; its reason is not kept.
"""

from __future__ import annotations

from collections.abc import Mapping

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
    Move,
    Pixel,
    Scroll,
    TypeText,
    Wait,
)
from vlrl.envs.gui.codecs.codec import ActionError
from vlrl.envs.gui.codecs.grammar.call_text import Parameters, cut_call, said_in
from vlrl.envs.gui.codecs.grammar.escapes import python_text
from vlrl.envs.gui.codecs.grammar.frames import Grid, shown_extent
from vlrl.envs.gui.codecs.grammar.grammar_codec import GrammarCodec
from vlrl.envs.gui.codecs.grammar.keys import written_key, written_keys
from vlrl.envs.gui.codecs.grammar.parsed_call import BUTTONS, MAX_SCROLL_PX, ParsedAction
from vlrl.envs.gui.codecs.grammar.parts import action_part
from vlrl.envs.gui.screen import Form

_FUNCTIONS: Mapping[str, Parameters] = {
    "noop": ("wait_ms",),
    "scroll": ("delta_x", "delta_y"),
    "mouse_move": ("x", "y"),
    "mouse_up": ("x", "y", "button"),
    "mouse_down": ("x", "y", "button"),
    "mouse_click": ("x", "y", "button"),
    "mouse_dblclick": ("x", "y", "button"),
    "mouse_drag_and_drop": ("from_x", "from_y", "to_x", "to_y"),
    "keyboard_press": ("key",),
    "keyboard_up": ("key",),
    "keyboard_down": ("key",),
    "keyboard_type": ("text",),
    "keyboard_insert_text": ("text",),
    "send_msg_to_user": ("text",),
    "report_infeasible": ("reason",),
}
_SIGNATURES = """\
noop(wait_ms: float = 1000): do nothing for a while
scroll(delta_x: float, delta_y: float): by pixels, positive to the right and down
mouse_move(x: float, y: float)
mouse_up(x: float, y: float, button: 'left' | 'middle' | 'right' = 'left')
mouse_down(x: float, y: float, button: 'left' | 'middle' | 'right' = 'left')
mouse_click(x: float, y: float, button: 'left' | 'middle' | 'right' = 'left')
mouse_dblclick(x: float, y: float, button: 'left' | 'middle' | 'right' = 'left')
mouse_drag_and_drop(from_x: float, from_y: float, to_x: float, to_y: float)
keyboard_down(key: str)
keyboard_up(key: str)
keyboard_press(key: str): a key or keys joined by +, such as 'Backspace', 'Control+a', 'ArrowDown', '#'
keyboard_type(text: str)
keyboard_insert_text(text: str)
send_msg_to_user(text: str): the answer to the task's question; empty when the task is done and has none
report_infeasible(reason: str): the task cannot be done"""


class BrowserGymCodec(GrammarCodec):
    """One function call, read and never run."""

    def instructions(self, screen: tuple[int, int], form: Form) -> str:
        """See `Codec`."""
        extent = shown_extent(self._frame, screen)
        corner = f" to ({extent[0]:g}, {extent[1]:g})"
        return (
            "You work with a web browser. You are given a screenshot and answer with exactly one call of "
            f"these functions; coordinates count from the top left corner{corner}:\n{_SIGNATURES}\n"
            "Example:\n```\nmouse_click(56, 712, 'right')\n```"
        )

    def _read(self, text: str, grid: Grid) -> Action:
        span = action_part(text)
        call = cut_call(text, span)
        if call.span[1] < span[1]:
            raise ActionError("syntax", "there is more than one call", (call.span[1], span[1]))
        return _action(said_in(text, call, _FUNCTIONS), grid)

    def _written(self, action: Action, grid: Grid) -> str | None:
        call = _call(action, grid)
        return None if call is None else f"```\n{call}\n```"


def _action(said: ParsedAction, grid: Grid) -> Action:
    match said.name:
        case "noop":
            return Wait(said.milliseconds("wait_ms", 1000, 1))
        case "scroll":
            dx, dy = (round(said.number(n, -MAX_SCROLL_PX, MAX_SCROLL_PX)) for n in ("delta_x", "delta_y"))
            return Scroll(dx, dy)
        case "mouse_move":
            return Move(said.xy(grid))
        case "mouse_up":
            return ButtonUp(said.choice("button", BUTTONS, "left"), said.xy(grid))
        case "mouse_down":
            return ButtonDown(said.choice("button", BUTTONS, "left"), said.xy(grid))
        case "mouse_click":
            return Click(said.xy(grid), said.choice("button", BUTTONS, "left"))
        case "mouse_dblclick":
            return Click(said.xy(grid), said.choice("button", BUTTONS, "left"), 2)
        case "mouse_drag_and_drop":
            return Drag((said.xy(grid, "from_x", "from_y"), said.xy(grid, "to_x", "to_y")))
        case "keyboard_press":
            return Key(said.chord("key"))
        case "keyboard_up":
            return KeyUp(said.key("key"))
        case "keyboard_down":
            return KeyDown(said.key("key"))
        case "keyboard_type" | "keyboard_insert_text":
            return TypeText(said.text("text"))
        case "send_msg_to_user":
            answer = said.text("text")
            return Answer(answer) if answer else Finish(True)
        case "report_infeasible":
            return Finish(False)
    raise said.unknown()


def _call(action: Action, grid: Grid) -> str | None:
    def at(*points: Pixel) -> str:
        return ", ".join(f"{number:g}" for point in points for number in grid.written(point))

    match action:
        case Click(point=(_, _) as point, button=button, count=1 | 2 as count, modifiers=()):
            return f"mouse_{'click' if count == 1 else 'dblclick'}({at(point)}, '{button}')"
        case Move(point=point):
            return f"mouse_move({at(point)})"
        case ButtonDown(button=button, point=(_, _) as point):
            return f"mouse_down({at(point)}, '{button}')"
        case ButtonUp(button=button, point=(_, _) as point):
            return f"mouse_up({at(point)}, '{button}')"
        case Drag(path=(start, end), button="left", modifiers=()):
            return f"mouse_drag_and_drop({at(start, end)})"
        case Scroll(dx=dx, dy=dy, point=point) if grid.is_pointer(point):
            return f"scroll({dx}, {dy})"
        case Key(keys=keys):
            return f"keyboard_press({python_text('+'.join(written_keys(keys, 'playwright')))})"
        case KeyDown(key=key):
            return f"keyboard_down({python_text(written_key(key, 'playwright'))})"
        case KeyUp(key=key):
            return f"keyboard_up({python_text(written_key(key, 'playwright'))})"
        case TypeText(text=text):
            return f"keyboard_type({python_text(text)})"
        case Wait(duration_ms=duration):
            return f"noop({duration})"
        case Answer(text=text) if text:
            return f"send_msg_to_user({python_text(text)})"
        case Finish(success=success):
            return "send_msg_to_user('')" if success else "report_infeasible('')"
    return None
