"""The events that an app's `handle` receives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias


@dataclass(frozen=True, slots=True)
class Command:
    """A button, a menu's item, a link or a shortcut was used; `on` is the row that a context menu is of."""

    id: str
    on: Any = None


@dataclass(frozen=True, slots=True)
class Change:
    """A widget has a new value. If the app's state has a field named `id`, that has it already."""

    id: str
    value: Any


@dataclass(frozen=True, slots=True)
class Activate:
    """A row was double-clicked, or enter pressed on it; enter was pressed in a text field."""

    id: str
    value: Any


@dataclass(frozen=True, slots=True)
class Drop:
    """Something was dragged onto the widget (or row) `on`; `what` is the dragged row's key."""

    id: str
    what: Any
    on: Any


@dataclass(frozen=True, slots=True)
class Stroke:
    """The pointer went along a path on a canvas, in the canvas's own pixels; one point is a click."""

    id: str
    path: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Reply:
    """A dialog that the app opened under this id was closed; None if it was cancelled."""

    id: str
    value: Any


@dataclass(frozen=True, slots=True)
class KeyPress:
    """A chord that no widget and no shortcut took: "ctrl+b", "f5", "7"."""

    chord: str


@dataclass(frozen=True, slots=True)
class Open:
    """The app was asked to open something while it was already running."""

    argument: str


@dataclass(frozen=True, slots=True)
class Closing:
    """The window is about to be closed; `system.keep_open()` prevents it."""


Event: TypeAlias = Command | Change | Activate | Drop | Stroke | Reply | KeyPress | Open | Closing
