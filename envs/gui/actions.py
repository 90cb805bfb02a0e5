"""What an agent may do to a screen: a closed set of typed actions.

Points are pixels of the screen as it is, never of what a model was shown; a codec converts. Pixel (x, y)
counts from the top left corner, 0 ≤ x < width. A point of None is where the pointer is. Nothing here is
evaluated.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

Pixel: TypeAlias = tuple[int, int]
"""(x, y)."""
Button = Literal["left", "middle", "right"]
Modifier = Literal["ctrl", "shift", "alt", "super"]
SystemButtonName = Literal["back", "home", "menu", "enter"]

NOTCH_PX = 100
"""What one notch of a wheel scrolls, in pixels: for grammars that count notches or only say a direction."""

KEY_NAMES: frozenset[str] = frozenset(
    {
        *(str(digit) for digit in range(10)),
        *"abcdefghijklmnopqrstuvwxyz",
        *"`-=[]\\;',./~!@#$%^&*()_+{}|:\"<>?",
        *(f"f{number}" for number in range(1, 13)),
        *get_args(Modifier),
        *("enter", "tab", "space", "backspace", "delete", "escape", "insert", "home", "end"),
        *("page_up", "page_down", "up", "down", "left", "right", "caps_lock", "print_screen", "menu"),
    }
)
"""Every key that a Key may hold; letters in lower case, shift said apart."""


@dataclass(frozen=True, slots=True)
class Move:
    """Move the pointer."""

    point: Pixel


@dataclass(frozen=True, slots=True)
class Click:
    """Press and release a button `count` (1 to 3) times with the modifiers held; a tap on a touch screen."""

    point: Pixel | None = None
    button: Button = "left"
    count: int = 1
    modifiers: tuple[Modifier, ...] = ()


@dataclass(frozen=True, slots=True)
class ButtonDown:
    """Press a button and hold it."""

    button: Button = "left"
    point: Pixel | None = None


@dataclass(frozen=True, slots=True)
class ButtonUp:
    """Let a held button go."""

    button: Button = "left"
    point: Pixel | None = None


@dataclass(frozen=True, slots=True)
class Drag:
    """Press at the first point of the path (at least two), move along it, release at the last."""

    path: tuple[Pixel, ...]
    button: Button = "left"
    modifiers: tuple[Modifier, ...] = ()


@dataclass(frozen=True, slots=True)
class Scroll:
    """Turn the wheel by dx and dy pixels, positive to the right and down: towards what comes later.

    `within_page` is set where only a direction was said: then a backend that knows the part which scrolls
    (gui/emu) goes no further than that part is high, so that nothing in it is skipped.
    """

    dx: int = 0
    dy: int = 0
    point: Pixel | None = None
    within_page: bool = False


@dataclass(frozen=True, slots=True)
class TypeText:
    """Type a text into what has the focus; a newline is the enter key."""

    text: str


@dataclass(frozen=True, slots=True)
class Key:
    """Press keys (of KEY_NAMES) one after the other, then release all: a chord such as ("ctrl", "s")."""

    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class KeyDown:
    """Press a key and hold it."""

    key: str


@dataclass(frozen=True, slots=True)
class KeyUp:
    """Let a held key go."""

    key: str


@dataclass(frozen=True, slots=True)
class Wait:
    """Let time pass: the emulator's own, or the machine's."""

    duration_ms: int = 1000


@dataclass(frozen=True, slots=True)
class LongPress:
    """Hold a finger on a place."""

    point: Pixel
    duration_ms: int = 800


@dataclass(frozen=True, slots=True)
class Swipe:
    """Drag a finger: what lies under it follows."""

    start: Pixel
    end: Pixel
    duration_ms: int = 300


@dataclass(frozen=True, slots=True)
class SystemButton:
    """Press a button of a phone."""

    name: SystemButtonName


@dataclass(frozen=True, slots=True)
class OpenApp:
    """Start an app, or bring it to the front, by its name."""

    name: str


@dataclass(frozen=True, slots=True)
class Answer:
    """Say the answer to the task's question; ends the episode."""

    text: str


@dataclass(frozen=True, slots=True)
class Finish:
    """Say that the task is done (success), or that it cannot be done; ends the episode."""

    success: bool = True


Action: TypeAlias = (
    Move
    | Click
    | ButtonDown
    | ButtonUp
    | Drag
    | Scroll
    | TypeText
    | Key
    | KeyDown
    | KeyUp
    | Wait
    | LongPress
    | Swipe
    | SystemButton
    | OpenApp
    | Answer
    | Finish
)


def points_of(action: Action) -> tuple[Pixel, ...]:
    """The places an action names, in the order they are visited; () if it names none."""
    match action:
        case Drag(path=path):
            return path
        case Swipe(start=start, end=end):
            return start, end
        case _:
            point = getattr(action, "point", None)
            return () if point is None else (point,)
