"""MiniWoB++ with coordinates: {"action_type": "CLICK_COORDS", "coords": [30, 60]}.

Sources, facts only: Farama-Foundation/miniwob-plusplus, miniwob/action.py for types and fields,
miniwob/selenium_actions.py for what they do and how keys are written ("C-a", "<Enter>"),
miniwob/constants.py for the names of keys and the amount of a scroll: 50 of a page 210 high, here the same
share of the screen. There an action is a mapping of numbers; here it is JSON with the type and the key by
their names.

Coordinates are pixels of the screenshot, which is larger than the page where the browser scales it. Actions
on elements by `ref` and on `field`s are refused. No action ends an episode: the page does.
"""

from __future__ import annotations

from typing import Any

from vlrl.envs.gui.actions import (
    Action,
    ButtonDown,
    ButtonUp,
    Click,
    Key,
    Move,
    Scroll,
    TypeText,
    Wait,
)
from vlrl.envs.gui.codecs.grammar.frames import Grid, shown_extent
from vlrl.envs.gui.codecs.grammar.grammar_codec import GrammarCodec
from vlrl.envs.gui.codecs.grammar.json_text import json_text, said_in_object
from vlrl.envs.gui.codecs.grammar.keys import MODIFIERS, chord, written_key
from vlrl.envs.gui.codecs.grammar.parsed_call import ParsedAction
from vlrl.envs.gui.screen import Form

_PREFIXES = {"C-": "ctrl", "S-": "shift", "A-": "alt", "M-": "super"}
_SCROLL, _PAGE = 50, 210

_TYPES = """\
{"action_type": "NONE"}: do nothing
{"action_type": "MOVE_COORDS", "coords": [x, y]}
{"action_type": "CLICK_COORDS", "coords": [x, y]}
{"action_type": "DBLCLICK_COORDS", "coords": [x, y]}
{"action_type": "MOUSEDOWN_COORDS", "coords": [x, y]}: start to drag
{"action_type": "MOUSEUP_COORDS", "coords": [x, y]}: stop dragging
{"action_type": "SCROLL_UP_COORDS", "coords": [x, y]}
{"action_type": "SCROLL_DOWN_COORDS", "coords": [x, y]}
{"action_type": "PRESS_KEY", "key": "C-a"}: a character or a name such as "<Enter>", "<ArrowDown>";
"C-" before it is control, "S-" shift, "A-" alt
{"action_type": "TYPE_TEXT", "text": "..."}"""


class MiniWobCodec(GrammarCodec):
    """One JSON object with an action_type of MiniWoB++."""

    def instructions(self, screen: tuple[int, int], form: Form) -> str:
        """See `Codec`."""
        extent = shown_extent(self._frame, screen)
        corner = f" to [{extent[0]:g}, {extent[1]:g}]" if extent else ""
        return (
            "You carry out a task on a small web page. You see its screenshot and answer with one action "
            f"in JSON; coordinates count from the top left corner{corner}:\n{_TYPES}"
        )

    def _read(self, text: str, grid: Grid) -> Action:
        said = said_in_object(text, "action_type")
        said.check_names(("coords", "key", "text", "ref", "field"))
        return _action(said, grid)

    def _written(self, action: Action, grid: Grid) -> str | None:
        try:
            members = _members(action, grid)
        except ValueError:  # a key without a name there
            members = None
        return None if members is None else json_text(members)


def _action(said: ParsedAction, grid: Grid) -> Action:
    match said.name:
        case "NONE":
            return Wait()
        case "MOVE_COORDS":
            return Move(said.point("coords", grid))
        case "CLICK_COORDS":
            return Click(said.point("coords", grid))
        case "DBLCLICK_COORDS":
            return Click(said.point("coords", grid), count=2)
        case "MOUSEDOWN_COORDS":
            return ButtonDown("left", said.point("coords", grid))
        case "MOUSEUP_COORDS":
            return ButtonUp("left", said.point("coords", grid))
        case "SCROLL_UP_COORDS" | "SCROLL_DOWN_COORDS":
            amount = max(1, round(grid.view.screen[1] * _SCROLL / _PAGE))
            down = said.name == "SCROLL_DOWN_COORDS"
            return Scroll(0, amount if down else -amount, said.point("coords", grid))
        case "PRESS_KEY":
            return Key(_keys(said))
        case "TYPE_TEXT":
            return TypeText(said.text("text"))
    raise said.unknown()


def _keys(said: ParsedAction) -> tuple[str, ...]:
    word = said.text("key")
    held: list[str] = []
    while word[:2] in _PREFIXES and len(word) > 2 and len(held) < len(_PREFIXES):
        held.append(_PREFIXES[word[:2]])
        word = word[2:]
    if len(word) > 2 and word.startswith("<") and word.endswith(">"):
        word = word[1:-1]
    elif len(word) != 1:
        raise said.wrong("key", "must be a character or a name in <…>, after C-, S-, A- or M-")
    try:
        return chord((*held, word))
    except ValueError as error:
        raise said.wrong("key", f"has {error}") from None


def _members(action: Action, grid: Grid) -> dict[str, Any] | None:
    match action:
        case Click(point=(_, _) as point, button="left", count=1 | 2 as count, modifiers=()):
            return _at("CLICK_COORDS" if count == 1 else "DBLCLICK_COORDS", point, grid)
        case Move(point=point):
            return _at("MOVE_COORDS", point, grid)
        case ButtonDown(button="left", point=(_, _) as point):
            return _at("MOUSEDOWN_COORDS", point, grid)
        case ButtonUp(button="left", point=(_, _) as point):
            return _at("MOUSEUP_COORDS", point, grid)
        case Scroll(dx=0, dy=dy, point=point) if dy:
            return _at(
                "SCROLL_DOWN_COORDS" if dy > 0 else "SCROLL_UP_COORDS", point or grid.view.pointer, grid
            )
        case Key(keys=(*held, key)) if set(held) <= set(MODIFIERS):
            prefixes = [prefix for modifier in held for prefix, name in _PREFIXES.items() if name == modifier]
            return {"action_type": "PRESS_KEY", "key": "".join(prefixes) + written_key(key, "webdriver")}
        case TypeText(text=text):
            return {"action_type": "TYPE_TEXT", "text": text}
        case Wait():
            return {"action_type": "NONE"}
    return None


def _at(name: str, point: tuple[int, int], grid: Grid) -> dict[str, Any]:
    return {"action_type": name, "coords": list(grid.written(point))}
