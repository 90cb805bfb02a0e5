r"""vlrl's own short grammar: <action>click 312 240</action>. It can say every action.

A text is written as it is, but for a newline, \n, and a backslash, \\; blanks at its ends are written \x20.
Coordinates are pixels of the image as it is given to the model. [12] in the place of X Y is the widget that
has the number 12, where widgets have numbers (`vlrl.envs.gui.marks`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import ClassVar, get_args

from vlrl.envs.action_text import CLOSING, OPENING
from vlrl.envs.gui.actions import (
    Action,
    Answer,
    Button,
    ButtonDown,
    ButtonUp,
    Click,
    Drag,
    Finish,
    Key,
    KeyDown,
    KeyUp,
    LongPress,
    Modifier,
    Move,
    OpenApp,
    Pixel,
    Scroll,
    Swipe,
    SystemButton,
    SystemButtonName,
    TypeText,
    Wait,
)
from vlrl.envs.gui.codecs.codec import ActionError
from vlrl.envs.gui.codecs.grammar.escapes import escaped_ends, unescaped
from vlrl.envs.gui.codecs.grammar.frames import Grid, shown_extent
from vlrl.envs.gui.codecs.grammar.grammar_codec import GrammarCodec
from vlrl.envs.gui.codecs.grammar.keys import MODIFIERS, named_plus
from vlrl.envs.gui.codecs.grammar.parsed_call import (
    BUTTONS,
    MAX_SCROLL_PX,
    Argument,
    ParsedAction,
    Span,
)
from vlrl.envs.gui.codecs.grammar.parts import tagged_part
from vlrl.envs.gui.marks import mark_at
from vlrl.envs.gui.screen import Form

MAX_PATH = 16
"""Most points of a drag."""

_SIDES: Mapping[str, Button] = {"": "left", "right_": "right", "middle_": "middle"}
_CLICKS: Mapping[str, tuple[Button, int]] = {
    f"{side}{times}click": (button, count)
    for side, button in _SIDES.items()
    for count, times in enumerate(("", "double_", "triple_"), 1)
}
_DRAGS: Mapping[str, Button] = {f"{side}drag": button for side, button in _SIDES.items()}
_SYSTEM: Mapping[str, SystemButtonName] = {name: name for name in get_args(SystemButtonName)}

_PATH = [f"{axis}{number}" for number in range(1, MAX_PATH + 1) for axis in "xy"]
_PARAMETERS: Mapping[str, list[str]] = {
    **{verb: ["x", "y"] for verb in _CLICKS},
    **{verb: _PATH for verb in _DRAGS},
    "move": ["x", "y"],
    "down": ["button", "x", "y"],
    "up": ["button", "x", "y"],
    "scroll": ["x", "y", "dx", "dy"],
    "wait": ["ms"],
    "long_press": ["x", "y", "ms"],
    "swipe": ["x1", "y1", "x2", "y2", "ms"],
    "button": ["button"],
    "done": [],
    "fail": [],
}
_WITH_TEXT = ("type", "key", "key_down", "key_up", "open", "answer")
VERBS = frozenset((*_PARAMETERS, *_WITH_TEXT))
"""The first words of actions."""

_DESKTOP = """\
click X Y; double_click X Y; triple_click X Y; right_click X Y; middle_click X Y; ctrl+click X Y
move X Y; drag X Y X Y; down left X Y; up left X Y
scroll X Y DX DY, in pixels, DX to the right and DY down
type TEXT; key ctrl+s; key_down shift; key_up shift
wait MILLISECONDS; answer TEXT; done; fail"""
_MOBILE = """\
click X Y; double_click X Y; long_press X Y; swipe X Y X Y
scroll X Y DX DY, in pixels, DX to the right and DY down
type TEXT; button back; button home; button menu; button enter; open APP
wait MILLISECONDS; answer TEXT; done; fail"""

_WORD = re.compile(r"\S+")
_MARK = re.compile(r"\[([0-9]{1,4})\]")
_NUMBER = re.compile(r"-?[0-9]{1,6}(?:\.[0-9]{1,6})?")


class PlainCodec(GrammarCodec):
    """One word and its arguments between action tags."""

    mark_example: ClassVar[str] = f"{OPENING}click [12]{CLOSING}"

    def instructions(self, screen: tuple[int, int], form: Form) -> str:
        """See `Codec`."""
        extent = shown_extent(self._frame, screen)
        counted = f" to {extent[0]:g} and {extent[1]:g}"
        return (
            f"You use a {'phone' if form == 'mobile' else 'computer'} by its screen. Write one action in "
            f"each message, such as <action>click 312 240</action>. X and Y count from the top left "
            f"corner{counted}. done says that the task is finished, fail that it cannot be done. Actions:\n"
            f"{_MOBILE if form == 'mobile' else _DESKTOP}"
        )

    def _read(self, text: str, grid: Grid) -> Action:
        said, modifiers = _said(text, tagged_part(text, OPENING, CLOSING), grid)
        return _action(said, modifiers, grid)

    def _written(self, action: Action, grid: Grid) -> str | None:
        words = _words(action, grid)
        return None if words is None else f"{OPENING}{words}{CLOSING}"


def _said(text: str, span: Span, grid: Grid) -> tuple[ParsedAction, tuple[Modifier, ...]]:
    first = _WORD.search(text, *span)
    if not first:
        raise ActionError("no_action", "there is nothing between the tags", span)
    modifiers, verb = without_modifiers(first.group())
    end = first.end() + len(text[first.end() : span[1]].rstrip(" \t\r\n"))
    whole = first.start(), end
    if verb in _WITH_TEXT:
        rest = text[first.end() : end].lstrip(" \t\r\n")
        given = {"text": Argument(unescaped(rest), (end - len(rest), end))} if rest else {}
        return ParsedAction(verb, whole, first.span(), given), modifiers
    if verb not in _PARAMETERS:
        raise ActionError("unknown_action", f"{verb[:40]!r} is no action here", first.span())
    names, arguments = _PARAMETERS[verb], _arguments(text, (first.end(), end), grid)
    if len(arguments) > len(names):
        takes = f"takes {' '.join(names[:8])}" if names else "takes no arguments"
        raise ActionError("bad_argument", f"{verb} {takes}", arguments[len(names)].span)
    given = dict(zip(names, arguments, strict=False))
    is_mark = len(arguments) == 2 and arguments[0].span == arguments[1].span
    if verb == "scroll" and len(given) == 2 and not is_mark:  # scroll DX DY, where the pointer is
        given = dict(zip(names[2:], given.values(), strict=True))
    return ParsedAction(verb, whole, first.span(), given), modifiers


def _arguments(text: str, span: Span, grid: Grid) -> list[Argument]:
    """The words of a span: numbers and texts; a mark is the two numbers of its place."""
    found: list[Argument] = []
    for word in _WORD.finditer(text, *span):
        mark = _MARK.fullmatch(word.group())
        if mark:
            try:
                found += [Argument(number, word.span()) for number in grid.mark(int(mark[1]))]
            except ValueError as error:
                raise ActionError("bad_argument", str(error), word.span()) from None
        else:
            value = float(word.group()) if _NUMBER.fullmatch(word.group()) else word.group()
            found.append(Argument(value, word.span()))
    return found


def without_modifiers(word: str) -> tuple[tuple[Modifier, ...], str]:
    """ctrl+click is a click with ctrl held."""
    *held, verb = word.split("+")
    if verb not in {*_CLICKS, *_DRAGS} or not set(held) <= set(MODIFIERS):
        return (), word
    return tuple(key for key in MODIFIERS if key in held), verb


def _action(said: ParsedAction, modifiers: tuple[Modifier, ...], grid: Grid) -> Action:
    if said.name in _CLICKS:
        return Click(said.xy(grid) if said.arguments else None, *_CLICKS[said.name], modifiers)
    if said.name in _DRAGS:
        number = max(2, (len(said.arguments) + 1) // 2)
        path = tuple(said.xy(grid, f"x{n}", f"y{n}") for n in range(1, number + 1))
        return Drag(path, _DRAGS[said.name], modifiers)
    match said.name:
        case "move":
            return Move(said.xy(grid))
        case "down" | "up":
            button = said.choice("button", BUTTONS, "left")
            place = said.xy(grid) if said.has("x") else None
            return (ButtonDown if said.name == "down" else ButtonUp)(button, place)
        case "scroll":
            dx, dy = (round(said.number(n, -MAX_SCROLL_PX, MAX_SCROLL_PX)) for n in ("dx", "dy"))
            return Scroll(dx, dy, said.xy(grid) if said.has("x") else None)
        case "type":
            return TypeText(said.text("text"))
        case "key":
            return Key(said.chord("text"))
        case "key_down" | "key_up":
            return (KeyDown if said.name == "key_down" else KeyUp)(said.key("text"))
        case "wait":
            return Wait(said.milliseconds("ms", 1000, 1))
        case "long_press":
            return LongPress(said.xy(grid), said.milliseconds("ms", 800, 1))
        case "swipe":
            start, end = said.xy(grid, "x1", "y1"), said.xy(grid, "x2", "y2")
            return Swipe(start, end, said.milliseconds("ms", 300, 1))
        case "button":
            return SystemButton(said.choice("button", _SYSTEM))
        case "open":
            return OpenApp(said.text("text"))
        case "answer":
            return Answer(said.text("text", ""))
        case "done" | "fail":
            return Finish(said.name == "done")
    raise said.unknown()


def _words(action: Action, grid: Grid) -> str | None:
    def at(*pixels: Pixel | None) -> str:
        return "".join(f" {place(pixel)}" for pixel in pixels if pixel)

    def place(pixel: Pixel) -> str:
        mark = mark_at(grid.view.marks, pixel)
        return f"[{mark}]" if mark else " ".join(f"{number:g}" for number in grid.written(pixel))

    match action:
        case Click(point=point, button=button, count=count, modifiers=held):
            verb = next((v for v, click in _CLICKS.items() if click == (button, count)), None)
            return verb and "+".join((*held, verb)) + at(point)
        case Move(point=point):
            return f"move{at(point)}"
        case ButtonDown(button=button, point=point):
            return f"down {button}{at(point)}"
        case ButtonUp(button=button, point=point):
            return f"up {button}{at(point)}"
        case Drag(path=path, button=button, modifiers=held) if 2 <= len(path) <= MAX_PATH:
            verb = next(v for v, side in _DRAGS.items() if side == button)
            return "+".join((*held, verb)) + at(*path)
        case Scroll(dx=dx, dy=dy, point=point):
            return f"scroll{at(point)} {dx} {dy}"
        case TypeText(text=text) if text:
            return f"type {escaped_ends(text)}"
        case Key(keys=keys):
            return f"key {'+'.join(map(named_plus, keys))}"
        case KeyDown(key=key):
            return f"key_down {named_plus(key)}"
        case KeyUp(key=key):
            return f"key_up {named_plus(key)}"
        case Wait(duration_ms=duration):
            return f"wait {duration}"
        case LongPress(point=point, duration_ms=duration):
            return f"long_press{at(point)} {duration}"
        case Swipe(start=start, end=end, duration_ms=duration):
            return f"swipe{at(start, end)} {duration}"
        case SystemButton(name=name):
            return f"button {name}"
        case OpenApp(name=name) if name:
            return f"open {escaped_ends(name)}"
        case Answer(text=text):
            return f"answer {escaped_ends(text)}"
        case Finish(success=success):
            return "done" if success else "fail"
    return None
