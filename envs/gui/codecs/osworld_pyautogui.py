"""OSWorld's pyautogui: one call such as pyautogui.click(100, 200), or WAIT, FAIL or DONE.

Sources, facts only: xlang-ai/OSWorld, mm_agents/prompts.py (SYS_PROMPT_IN_SCREENSHOT_OUT_CODE) for the
form, and asweigart/pyautogui, pyautogui/__init__.py for names and parameters of the functions. There a text
is a program that is run; here it is read, and exactly one call is accepted. Lines that import pyautogui and
time, and comments, may stand around it. A second call, a variable, a loop, any other module are errors.

A drag and a scroll start where the pointer is, and so does what is given no x and y: move there first.
`scroll` and `hscroll` count notches of NOTCH_PX, up and to the right where positive. `duration`, `interval`
and the like are read and left unused. pyautogui presses the keys of a list, and the same key `presses`
times, one after the other; that is more than one action and is refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from vlrl.envs.gui.actions import (
    NOTCH_PX,
    Action,
    Button,
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
from vlrl.envs.gui.codecs.grammar.call_text import Parameters, Written, cut_call, said_in
from vlrl.envs.gui.codecs.grammar.escapes import python_text
from vlrl.envs.gui.codecs.grammar.frames import Grid, shown_extent
from vlrl.envs.gui.codecs.grammar.grammar_codec import GrammarCodec
from vlrl.envs.gui.codecs.grammar.keys import written_keys
from vlrl.envs.gui.codecs.grammar.parsed_call import (
    BUTTONS,
    MAX_SCROLL_PX,
    ParsedAction,
    Span,
    notches,
    seconds,
)
from vlrl.envs.gui.codecs.grammar.parts import action_part
from vlrl.envs.gui.screen import Form

_UNUSED = ("logScreenshot", "_pause")
_CLICK = ("x", "y", "interval", "button", "duration", "tween", *_UNUSED)
_ONE_BUTTON = ("x", "y", "interval", "duration", "tween", *_UNUSED)
_FUNCTIONS: Mapping[str, Parameters] = {
    "click": ("x", "y", "clicks", "interval", "button", "duration", "tween", *_UNUSED),
    "leftClick": _ONE_BUTTON,
    "rightClick": _ONE_BUTTON,
    "middleClick": _ONE_BUTTON,
    "doubleClick": _CLICK,
    "tripleClick": _CLICK,
    "moveTo": ("x", "y", "duration", "tween", *_UNUSED),
    "dragTo": ("x", "y", "duration", "tween", "button", *_UNUSED, "mouseDownUp"),
    "mouseDown": ("x", "y", "button", "duration", "tween", *_UNUSED),
    "mouseUp": ("x", "y", "button", "duration", "tween", *_UNUSED),
    "scroll": ("clicks", "x", "y", *_UNUSED),
    "vscroll": ("clicks", "x", "y", *_UNUSED),
    "hscroll": ("clicks", "x", "y", *_UNUSED),
    "write": ("message", "interval", *_UNUSED),
    "typewrite": ("message", "interval", *_UNUSED),
    "press": ("keys", "presses", "interval", *_UNUSED),
    "hotkey": ("*keys", "interval", *_UNUSED),
    "keyDown": ("key", *_UNUSED),
    "keyUp": ("key", *_UNUSED),
}
_CALLS: Mapping[str, Parameters] = {
    **{f"pyautogui.{name}": parameters for name, parameters in _FUNCTIONS.items()},
    "time.sleep": ("seconds",),
}
_SPECIAL: Mapping[str, Action] = {"WAIT": Wait(), "FAIL": Finish(False), "DONE": Finish(True)}
_CLICKS: Mapping[str, tuple[Button, int]] = {
    "click": ("left", 1),
    "leftClick": ("left", 1),
    "rightClick": ("right", 1),
    "middleClick": ("middle", 1),
    "doubleClick": ("left", 2),
    "tripleClick": ("left", 3),
}
_PRESSED: Mapping[str, Button] = {**BUTTONS, "primary": "left", "secondary": "right"}

MAX_STATEMENTS = 8
"""Most calls that are looked at in one text."""
# What may stand around a call: blanks, semicolons, comments, imports of the two modules.
_AROUND = re.compile(r"(?:[\s;]+|#[^\n]*|import[ \t]+(?:pyautogui|time)(?=[\s;#]|\Z))*")


class PyautoguiCodec(GrammarCodec):
    """One pyautogui call, read and never run."""

    def instructions(self, screen: tuple[int, int], form: Form) -> str:
        """See `Codec`."""
        extent = shown_extent(self._frame, screen)
        corner = f"; the bottom right corner is ({extent[0]:g}, {extent[1]:g})" if extent else ""
        return (
            "You carry out tasks on a computer. You are given a screenshot and act by `pyautogui`. In each "
            "message write exactly one call, in a code block:\n```python\npyautogui.click(100, 200)\n```\n"
            f"Coordinates count from the top left corner{corner}. There are click, rightClick, middleClick, "
            "doubleClick, tripleClick, moveTo, dragTo (from where the pointer is), mouseDown, mouseUp, "
            "scroll (notches, positive is up), hscroll, write, press, hotkey, keyDown, keyUp and time.sleep. "
            "Arguments are numbers and texts; there are no variables and no other functions.\n"
            "Instead of a call you may write ```WAIT``` to wait, ```FAIL``` if the task cannot be done, and "
            "```DONE``` when it is done."
        )

    def _read(self, text: str, grid: Grid) -> Action:
        span = action_part(text)
        if text[slice(*span)] in _SPECIAL:
            return _SPECIAL[text[slice(*span)]]
        said = said_in(text, cut_call(text, _only_statement(text, span)), _CALLS)
        return _action(said, grid)

    def _written(self, action: Action, grid: Grid) -> str | None:
        if isinstance(action, Finish):
            return "```DONE```" if action.success else "```FAIL```"
        call = _call(action, grid)
        return None if call is None else f"```python\n{call}\n```"


def statements(text: str, span: Span) -> list[Written]:
    """The calls of a text that is nothing but calls, imports and comments.

    Raises:
        ActionError: kind "syntax" for anything else.
    """
    calls: list[Written] = []
    start = span[0]
    while len(calls) < MAX_STATEMENTS:
        around = _AROUND.match(text, start, span[1])
        start = around.end() if around else start
        if start == span[1]:
            break
        calls.append(cut_call(text, (start, span[1])))
        start = calls[-1].span[1]
    return calls


def _only_statement(text: str, span: Span) -> Span:
    """Span from the start of the call to its end; nothing that counts may follow a call."""
    around = _AROUND.match(text, *span)
    start = around.end() if around else span[0]
    if start == span[1]:
        raise ActionError("no_action", "there is no call", span)
    after = cut_call(text, (start, span[1])).span[1]
    around = _AROUND.match(text, after, span[1])
    rest = around.end() if around else after
    if rest < span[1]:
        raise ActionError("syntax", "more than one call in one message", (rest, span[1]))
    return start, after


def _action(said: ParsedAction, grid: Grid) -> Action:
    place = said.xy(grid) if said.has("x", "y") else None
    match said.name.removeprefix("pyautogui."):
        case name if name in _CLICKS:
            button, count = _CLICKS[name]
            count = round(said.number("clicks", 1, 3, count))
            return Click(place, said.choice("button", _PRESSED, button), count)
        case "moveTo":
            return Move(said.xy(grid))
        case "dragTo":
            return Drag((grid.view.pointer, said.xy(grid)), said.choice("button", _PRESSED, "left"))
        case "mouseDown":
            return ButtonDown(said.choice("button", _PRESSED, "left"), place)
        case "mouseUp":
            return ButtonUp(said.choice("button", _PRESSED, "left"), place)
        case "scroll" | "vscroll":
            return Scroll(0, -_pixels(said), place)
        case "hscroll":
            return Scroll(_pixels(said), 0, place)
        case "write" | "typewrite":
            return TypeText(said.text("message"))
        case "press":
            said.number("presses", 1, 1, 1)
            return Key(said.one_key_chord("keys"))
        case "hotkey":
            return Key(said.chord("keys"))
        case "keyDown":
            return KeyDown(said.key("key"))
        case "keyUp":
            return KeyUp(said.key("key"))
        case "time.sleep":
            return Wait(said.milliseconds("seconds", 1000))
    raise said.unknown()


def _pixels(said: ParsedAction) -> int:
    most = MAX_SCROLL_PX / NOTCH_PX
    return round(said.number("clicks", -most, most) * NOTCH_PX)


def _call(action: Action, grid: Grid) -> str | None:
    def at(point: Pixel | None, *more: str) -> str:
        numbers = [f"{number:g}" for number in grid.written(point)] if point else []
        return f"({', '.join((*numbers, *more))})"

    def pressed(button: Button, point: Pixel | None) -> str:
        return at(point, f"button='{button}'")

    def keys(*names: str) -> str:
        return f"({', '.join(map(python_text, written_keys(names, 'pyautogui')))})"

    match action:
        case Click(point=point, button=button, count=count, modifiers=()):
            name = next((name for name, click in _CLICKS.items() if click == (button, count)), None)
            more = () if name else (f"clicks={count}", f"button='{button}'")
            return f"pyautogui.{name or 'click'}{at(point, *more)}"
        case Move(point=point):
            return f"pyautogui.moveTo{at(point)}"
        case Drag(path=(start, end), button=button, modifiers=()) if grid.is_pointer(start):
            return f"pyautogui.dragTo{pressed(button, end)}"
        case ButtonDown(button=button, point=point):
            return f"pyautogui.mouseDown{pressed(button, point)}"
        case ButtonUp(button=button, point=point):
            return f"pyautogui.mouseUp{pressed(button, point)}"
        case Scroll(dx=0, dy=dy, point=point):
            return f"pyautogui.scroll{_after(notches(-dy), at(point))}"
        case Scroll(dx=dx, dy=0, point=point):
            return f"pyautogui.hscroll{_after(notches(dx), at(point))}"
        case TypeText(text=text):
            return f"pyautogui.write({python_text(text)})"
        case Key(keys=(key,)):
            return f"pyautogui.press{keys(key)}"
        case Key(keys=chord):
            return f"pyautogui.hotkey{keys(*chord)}"
        case KeyDown(key=key):
            return f"pyautogui.keyDown{keys(key)}"
        case KeyUp(key=key):
            return f"pyautogui.keyUp{keys(key)}"
        case Wait(duration_ms=duration):
            return f"time.sleep({seconds(duration)})"
    return None


def _after(first: int, arguments: str) -> str:
    return f"({first}, {arguments[1:]}" if arguments != "()" else f"({first})"
