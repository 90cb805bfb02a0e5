r"""UI-TARS: `Thought: …` and `Action: click(…)`, a call whose arguments are all texts in quotes.

Sources, facts only: bytedance/UI-TARS, codes/ui_tars/action_parser.py and the prompts of its package
(desktop: COMPUTER_USE_DOUBAO, phone: MOBILE_USE_DOUBAO), README_v1.md for 1.0, and issues 157 and 195 for
the frames: 1.0 writes 0 to 1000 of each side, 1.5 pixels of the image as it was given to it.

Both versions are read in either of the ways that a place is written: `point='<point>10 20</point>'` and
`start_box='<|box_start|>(10,20)<|box_end|>'`, the latter also without its tags; of a box, four numbers, the
middle counts. 1.0 writes boxes, 1.5 points.

A text runs to the first quote that another argument or the closing bracket follows, so that a quote within
it need not be written \'. A scroll goes by half of the screen, as its direction is all that is said, and by
at most five notches, which is what the package turns the wheel by. `finished(content='…')` with a text is an
answer. `call_user()` gives up.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from vlrl.envs.gui.actions import (
    Action,
    Answer,
    Button,
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
from vlrl.envs.gui.codecs.grammar.directions import DIRECTIONS, direction_of, scroll_towards
from vlrl.envs.gui.codecs.grammar.escapes import escaped, unescaped
from vlrl.envs.gui.codecs.grammar.frames import Grid
from vlrl.envs.gui.codecs.grammar.grammar_codec import GrammarCodec
from vlrl.envs.gui.codecs.grammar.keys import written_key, written_keys
from vlrl.envs.gui.codecs.grammar.parsed_call import Argument, ParsedAction
from vlrl.envs.gui.codecs.grammar.parts import action_part
from vlrl.envs.gui.screen import Form

WAIT_MS = 5000
"""How long wait() is said to be."""

_CLICKS: Mapping[str, tuple[Button, int]] = {
    "click": ("left", 1),
    "left_double": ("left", 2),
    "right_single": ("right", 1),
    "left_single": ("left", 1),
}
_ARGUMENTS: Mapping[str, str] = {
    **dict.fromkeys(("start_box", "start_point", "point"), "start"),
    **dict.fromkeys(("end_box", "end_point"), "end"),
    **dict.fromkeys(("key", "hotkey", "press"), "key"),
    **{name: name for name in ("content", "direction", "app_name", "time")},
}
"""What arguments are called → what is meant."""

_DESKTOP = """\
click({place})
left_double({place})
right_single({place})
drag({start}, {end})
hotkey(key='ctrl c') # Keys in small letters with a blank between them, three at most.
type(content='xxx') # Write \\', \\" and \\n for quotes and new lines. A \\n at the end submits the text.
scroll({place}, direction='down or up or right or left')
wait() # Five seconds.
finished(content='xxx') # The answer, if there is a question.
call_user() # If the task cannot be done.
"""
_MOBILE = """\
click({place})
long_press({place})
type(content='xxx') # Write \\', \\" and \\n for quotes and new lines. A \\n at the end submits the text.
scroll({place}, direction='down or up or right or left')
open_app(app_name='xxx')
drag({start}, {end})
press_home()
press_back()
wait() # Five seconds.
finished(content='xxx') # The answer, if there is a question.
call_user() # If the task cannot be done.
"""

_CALL = re.compile(r"([A-Za-z_]+)\s*\(")
_OPENS = re.compile(r"\s*([A-Za-z_]+)\s*=\s*(['\"])")
_CLOSES = {quote: re.compile(rf"{quote}\s*(?:,(?=\s*[A-Za-z_]+\s*=\s*['\"])|\Z)") for quote in "'\""}
_PLACE = re.compile(r"(?:<point>|<\|box_start\|>|<bbox>)?([^<>|]*)(?:</point>|<\|box_end\|>|</bbox>)?")
_NUMBERS = re.compile(r"[(\[]?\s*(-?[0-9.]{1,12}(?:[\s,]+-?[0-9.]{1,12}){1,3})\s*[)\]]?")


class UiTarsCodec(GrammarCodec):
    """Thought and action, of version 1.0 or 1.5."""

    def instructions(self, screen: tuple[int, int], form: Form) -> str:
        """See `Codec`."""
        actions = (_MOBILE if form == "mobile" else _DESKTOP).format(
            place=self._named("", "x1", "y1"),
            start=self._named("start", "x1", "y1"),
            end=self._named("end", "x2", "y2"),
        )
        return (
            "You are a GUI agent. You are given a task and what was done so far, with screenshots. Say "
            "what the next action is.\n\n## Output Format\n```\nThought: ...\nAction: ...\n```\n\n"
            f"## Action Space\n\n{actions}\n## Note\n- One action in each message.\n"
            "- In `Thought`, make a small plan and end it with one sentence that says the next action and "
            "its target.\n"
        )

    def _read(self, text: str, grid: Grid) -> Action:
        return _action(_said(text), grid)

    def _written(self, action: Action, grid: Grid) -> str | None:
        call = self._call(action, grid)
        return None if call is None else f"Action: {call}"

    def _named(self, which: str, x: object, y: object) -> str:
        """A place as an argument: `which` is "start", "end" or, of an action at one place, empty."""
        if self.name.startswith("uitars_1_5"):
            return f"{which + '_' if which else ''}point='<point>{x} {y}</point>'"
        return f"{which or 'start'}_box='<|box_start|>({x},{y})<|box_end|>'"

    def _call(self, action: Action, grid: Grid) -> str | None:
        def at(pixel: Pixel, which: str = "") -> str:
            x, y = grid.written(pixel)
            return self._named(which, f"{x:g}", f"{y:g}")

        match action:
            case Click(point=(_, _) as point, button=button, count=count, modifiers=()):
                name = next((name for name, click in _CLICKS.items() if click == (button, count)), None)
                return name and f"{name}({at(point)})"
            case Move(point=point):
                return f"hover({at(point)})"
            case Drag(path=(start, end), button="left", modifiers=()):
                return f"drag({at(start, 'start')}, {at(end, 'end')})"
            case Swipe(start=start, end=end):  # a drag is a finger's where there is no mouse
                return f"drag({at(start, 'start')}, {at(end, 'end')})"
            case LongPress(point=point):
                return f"long_press({at(point)})"
            case Scroll(point=point):
                way = direction_of(action)
                place = f"{at(point)}, " if point else ""
                return way and f"scroll({place}direction='{way}')"
            case Key(keys=keys):
                return f"hotkey(key='{' '.join(map(escaped, written_keys(keys, 'pyautogui')))}')"
            case KeyDown(key=key):
                return f"press(key='{escaped(written_key(key, 'pyautogui'))}')"
            case KeyUp(key=key):
                return f"release(key='{escaped(written_key(key, 'pyautogui'))}')"
            case TypeText(text=text):
                return f"type(content='{escaped(text)}')"
            case OpenApp(name=name):
                return f"open_app(app_name='{escaped(name)}')"
            case SystemButton(name="home" | "back" as name):
                return f"press_{name}()"
            case Wait():
                return "wait()"
            case Answer(text=text) if text:
                return f"finished(content='{escaped(text)}')"
            case Finish(success=success):
                return "finished()" if success else "call_user()"
        return None


def _said(text: str) -> ParsedAction:
    span = action_part(text)
    call = _CALL.match(text, *span)
    if not call or text[span[1] - 1] != ")":
        raise ActionError("syntax", "the action is no call, such as wait()", span)
    given: dict[str, Argument] = {}
    start, end = call.end(), span[1] - 1
    while text[start:end].strip():
        opens = _OPENS.match(text, start, end)
        closes = opens and _CLOSES[opens.group(2)].search(text, opens.end(), end)
        if not opens or not closes:
            raise ActionError("syntax", "arguments are name='text', with commas between them", (start, end))
        name = _ARGUMENTS.get(opens.group(1))
        if name is None or name in given:
            reason = f"{opens.group(1)[:40]} is no argument, or is given twice"
            raise ActionError("bad_argument", reason, opens.span(1))
        given[name] = Argument(unescaped(text[opens.end() : closes.start()]), (opens.start(1), closes.end()))
        start = closes.end()
    return ParsedAction(call.group(1), span, call.span(1), given)


def _action(said: ParsedAction, grid: Grid) -> Action:
    match said.name:
        case name if name in _CLICKS:
            return Click(_place(said, "start", grid), *_CLICKS[name])
        case "hover":
            return Move(_place(said, "start", grid))
        case "drag" | "select":
            return Drag((_place(said, "start", grid), _place(said, "end", grid)))
        case "long_press":
            return LongPress(_place(said, "start", grid))
        case "scroll":
            place = _place(said, "start", grid) if said.has("start") else None
            return scroll_towards(said.choice("direction", DIRECTIONS), grid.view, place)
        case "hotkey":
            return Key(said.chord("key", separator=" "))
        case "press" | "keydown":
            return KeyDown(said.key("key"))
        case "release" | "keyup":
            return KeyUp(said.key("key"))
        case "type":
            return TypeText(said.text("content"))
        case "open_app":
            return OpenApp(said.text("app_name"))
        case "press_home" | "navigate_home":
            return SystemButton("home")
        case "press_back" | "navigate_back":
            return SystemButton("back")
        case "wait" | "WAIT":
            return Wait(WAIT_MS)
        case "finished":
            answer = said.text("content", "")
            return Answer(answer) if answer.strip() else Finish(True)
        case "call_user":
            return Finish(False)
    raise said.unknown()


def _place(said: ParsedAction, name: str, grid: Grid) -> Pixel:
    place = _PLACE.fullmatch(said.text(name).strip())
    numbers = place and _NUMBERS.fullmatch(place.group(1).strip())
    try:
        values = [float(number) for number in re.split(r"[\s,]+", numbers.group(1))] if numbers else []
    except ValueError:  # such as 1.2.3
        values = []
    if len(values) not in (2, 4):
        raise said.wrong(name, "must be a place, two numbers")
    x, y = (values[0] + values[-2]) / 2, (values[1] + values[-1]) / 2
    return said.pixel(grid, x, y, said.arguments[name].span)
