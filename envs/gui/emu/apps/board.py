"""Board: a few large coloured buttons; it keeps which were pressed, in their order."""

from __future__ import annotations

from dataclasses import dataclass

from vlrl.envs.gui.emu.app import App, Reader, System, register
from vlrl.envs.gui.emu.input.events import Command, Event
from vlrl.envs.gui.emu.strings import add_words
from vlrl.envs.gui.emu.widgets import Button, Column, Grid, Label, Row, Space, Widget

add_words("""
Board = Tafel = Tableau = Tablero
""")


@dataclass(frozen=True)
class Board:
    """What is on it.

    Attributes:
        columns: buttons side by side.
        room: shares of the empty room to the left, right, above and below.
        key: width and height of a button in pixels; it grows with its text.
        steps: how many presses are asked for; each shows as a dot that is filled when it is done.
        fades: a button that was pressed loses its colour.
        buttons: (id, tone, icon, text) of each.
    """

    columns: int
    room: tuple[int, int, int, int]
    key: tuple[int, int]
    steps: int
    fades: bool
    buttons: tuple[tuple[str, str, str, str], ...]


def argument(board: Board) -> str:
    """What a task opens it with."""
    head = ",".join(map(str, (board.columns, *board.room, *board.key, board.steps, int(board.fades))))
    return "\x1e".join((head, *map("\x1f".join, board.buttons)))


def start(argument: str, reader: Reader) -> Board:
    """Start with the buttons that a task gave."""
    head, *buttons = argument.split("\x1e")
    columns, left, right, above, below, wide, high, steps, fades = map(int, head.split(","))
    made = tuple((id, tone, icon, text) for id, tone, icon, text in (one.split("\x1f") for one in buttons))
    return Board(columns, (left, right, above, below), (wide, high), steps, bool(fades), made)


def build(state: Board, reader: Reader) -> Widget:
    """The buttons somewhere in the window."""
    pressed: tuple[str, ...] = reader.data or ()
    faded = pressed if state.fades else ()
    wide, high = state.key
    keys = [
        Button(id, text, tone="" if id in faded else tone, icon=icon, width=wide, height=high, grow=1)
        for id, tone, icon, text in state.buttons
    ]
    left, right, above, below = map(Space, state.room)
    done = min(len(pressed), state.steps)
    dots = " ".join("●" * done + "○" * (state.steps - done)) if state.steps > 1 else ""
    return Column(
        Label(dots, "title", align="center"),
        above,
        Row(left, Grid(state.columns, *keys, gap=2), right),
        below,
        pad=2,
    )


def handle(state: Board, event: Event, system: System) -> Board:
    """Remember what was pressed."""
    if isinstance(event, Command):
        system.keep((*(system.data or ()), event.id))
    return state


BOARD = register(App("board", "Board", "tasks", start, build, handle, size=(440, 280), is_listed=False))
