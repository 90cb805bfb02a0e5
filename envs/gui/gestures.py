"""What a person does to a screen, as the text that a model would write: by the environment's own codec."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args

from vlrl.envs.gui.actions import (
    KEY_NAMES,
    Action,
    Answer,
    Button,
    Click,
    Drag,
    Finish,
    Key,
    LongPress,
    Modifier,
    Move,
    Pixel,
    Scroll,
    Swipe,
    SystemButton,
    SystemButtonName,
    TypeText,
    Wait,
)
from vlrl.envs.gui.codecs.codec import ActionError, Codec, View
from vlrl.envs.gui.codecs.grammar.next_words import next_words
from vlrl.errors import DataError

MAX_POINTS = 200
"""Of a drag."""


def text_of(codec: Codec, view: View, asked: Mapping[str, Any]) -> tuple[str, bool]:
    """(the action's text, whether that is all of it).

    Where drags and scrolls start at the pointer, the move there comes first: act, then ask again.

    Args:
        codec: the environment's.
        view: of the screen that was shown.
        asked: {"kind": "click", "x": 3, "y": 4, …}, as the page sends it; places in pixels of the screen.

    Raises:
        DataError: for what is not an action, or one that the environment's grammar cannot say.
    """
    action = action_of(asked)
    try:
        text = _words(codec, action, view)
        understood = codec.parse(text, view)
    except ActionError as error:
        raise DataError(f"the grammar {codec.name!r} cannot say it: {error}") from None
    if isinstance(understood, Move) and not isinstance(action, Move):
        return text, False
    lost = _lost(action, understood)
    if lost:
        raise DataError(f"the grammar {codec.name!r} cannot say {lost}: it would be {text!r}")
    return text, True


def action_of(asked: Mapping[str, Any]) -> Action:
    """The action that the page asks for.

    Raises:
        DataError: for what is none.
    """
    kind = str(asked.get("kind", ""))
    if kind not in _KINDS:
        raise DataError(f"{kind!r} is not a gesture; known are {', '.join(_KINDS)}")
    return _KINDS[kind](_Asked(asked))


@dataclass(frozen=True, slots=True)
class _Asked:
    """A request's values, each of the type that it must have."""

    values: Mapping[str, Any]

    def number(self, name: str, otherwise: int | None = None) -> int:
        value = self.values.get(name, otherwise)
        if isinstance(value, bool) or not isinstance(value, int) or abs(value) > 10**6:
            raise DataError(f"{name}={value!r} is not a whole number")
        return value

    def one_of(self, name: str, allowed: Sequence[Any], otherwise: str = "") -> Any:
        value = self.values.get(name, otherwise)
        if value not in allowed:
            raise DataError(f"{name}={value!r} is none of {', '.join(map(str, allowed))}")
        return value

    def text(self) -> str:
        return str(self.values.get("text", ""))

    def several(self, name: str) -> list[Any]:
        value = self.values.get(name, [])
        if not isinstance(value, list):
            raise DataError(f"{name}={value!r} is not a list")
        return value

    def point(self) -> Pixel:
        return self.number("x"), self.number("y")

    def path(self) -> tuple[Pixel, ...]:
        places = [_Asked({"x": p[0], "y": p[1]}).point() for p in self.several("path") if len(p) == 2]
        if not 2 <= len(places) <= MAX_POINTS:
            raise DataError(f"a path has from 2 to {MAX_POINTS} places, and this one {len(places)}")
        return tuple(places)

    def keys(self) -> tuple[str, ...]:
        keys = tuple(str(key) for key in self.several("keys"))
        unknown = [key for key in keys if key not in KEY_NAMES]
        if unknown or not keys:
            raise DataError(f"{'+'.join(keys)!r} are not keys; a chord is written ctrl+s, other keys page_up")
        return keys

    def click(self) -> Click:
        held = self.several("modifiers")
        if not set(held) <= set(get_args(Modifier)):
            raise DataError(f"modifiers={held!r} are none of {', '.join(get_args(Modifier))}")
        button = self.one_of("button", get_args(Button), "left")
        return Click(self.point(), button, min(max(self.number("count", 1), 1), 3), tuple(held))


_KINDS: Mapping[str, Callable[[_Asked], Action]] = {
    "click": lambda asked: asked.click(),
    "move": lambda asked: Move(asked.point()),
    "drag": lambda asked: Drag(asked.path(), asked.one_of("button", get_args(Button), "left")),
    "scroll": lambda asked: Scroll(asked.number("dx", 0), asked.number("dy", 0), asked.point()),
    "type": lambda asked: TypeText(asked.text()),
    "key": lambda asked: Key(asked.keys()),
    "wait": lambda asked: Wait(),
    "long_press": lambda asked: LongPress(asked.point()),
    "swipe": lambda asked: Swipe(asked.path()[0], asked.path()[-1]),
    "system_button": lambda asked: SystemButton(asked.one_of("name", get_args(SystemButtonName))),
    "answer": lambda asked: Answer(asked.text()),
    "finish": lambda asked: Finish(bool(asked.values.get("success", True))),
}


def _words(codec: Codec, action: Action, view: View) -> str:
    """Words of an action: a drag's whole way, as hands draw no straight line, or its ends if that fails."""
    try:
        return next_words(codec, action, view)
    except ActionError:
        if isinstance(action, Drag) and len(action.path) > 2:
            return next_words(codec, replace(action, path=(action.path[0], action.path[-1])), view)
        raise


def _lost(meant: Action, understood: Action) -> str:
    """What of an action its text does not say; places may be rounded, and a path has but its ends."""
    if isinstance(meant, Scroll) and isinstance(understood, Swipe):
        return ""  # a finger's way to scroll
    if type(meant) is not type(understood):
        return f"a {type(meant).__name__}"
    for name in ("button", "count", "modifiers", "keys", "success"):
        value = getattr(meant, name, None)
        if value != getattr(understood, name, None):
            return f"{name}={value!r}"
    return ""
