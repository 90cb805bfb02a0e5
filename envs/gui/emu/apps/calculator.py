"""Calculator: one step after the other, with a memory; it keeps a tape of what came out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Context, Decimal, DecimalException
from typing import NamedTuple

from vlrl.envs.gui.emu.app import App, Reader, System, register
from vlrl.envs.gui.emu.input.events import Command, Event, KeyPress
from vlrl.envs.gui.emu.strings import add_words
from vlrl.envs.gui.emu.widgets import Button, Column, Divider, Grid, Label, Row, Space, Widget

add_words("""
Calculator = Rechner = Calculatrice = Calculadora
""")
KEYS = (
    *(("memory_clear", "MC"), ("memory_recall", "MR"), ("memory_add", "M+"), ("memory_less", "M−")),
    *(("clear", "C"), ("sign", "±"), ("percent", "%"), ("divide", "÷")),
    *(("7", "7"), ("8", "8"), ("9", "9"), ("times", "×")),
    *(("4", "4"), ("5", "5"), ("6", "6"), ("minus", "−")),
    *(("1", "1"), ("2", "2"), ("3", "3"), ("plus", "+")),
    *(("back", "←"), ("0", "0"), ("point", "."), ("equals", "=")),
)
CHORDS = {
    "+": "plus",
    "-": "minus",
    "*": "times",
    "/": "divide",
    "=": "equals",
    "enter": "equals",
    ".": "point",
    ",": "point",
    "%": "percent",
    "backspace": "back",
    "delete": "clear",
    "escape": "clear",
}
SIGNS = {"plus": "+", "minus": "−", "times": "×", "divide": "÷"}
DIGITS = 12
TAPE_LINES = 50
ERROR = "Error"
_context = Context(prec=DIGITS)


class Kept(NamedTuple):
    """What outlives the window.

    Attributes:
        tape: the last steps, as "12 + 30 = 42"; a number alone where there was nothing to do.
    """

    memory: str = "0"
    tape: tuple[str, ...] = ()


@dataclass(frozen=True)
class Calculator:
    """What is shown, and what is to be done with it.

    Attributes:
        first: number in front of the sign; `sign` is one of SIGNS, or "".
        is_new: whether the next digit begins a new number.
    """

    shown: str = "0"
    first: str = ""
    sign: str = ""
    is_new: bool = True


def start(argument: str, reader: Reader) -> Calculator:
    """Start at zero."""
    return Calculator()


def build(state: Calculator, reader: Reader) -> Widget:
    """The number above the keys."""
    kept: Kept = reader.data or Kept()
    above = f"{state.first} {SIGNS[state.sign]}" if state.sign else ""
    keys = [
        Button(
            f"key.{id}",
            text,
            kind="primary" if id == "equals" else "" if text.isdigit() or id == "point" else "tool",
            width=44,
            height=30,
            grow=1,
        )
        for id, text in KEYS
    ]
    return Column(
        Column(
            Row(Label("M" if kept.memory != "0" else "", "bold"), Space(), Label(above, "muted")),
            Row(Space(), Label(state.shown, "title", id="shown")),
            Divider(),
        ),
        Grid(4, *keys, grow=1),
        pad=2,
        gap=2,
    )


def handle(state: Calculator, event: Event, system: System) -> Calculator:
    """A key of the screen, or of the keyboard."""
    match event:
        case Command(id) if id.startswith("key."):
            return _press(state, id.removeprefix("key."), system)
        case KeyPress(chord):
            return _press(state, CHORDS.get(chord, chord), system)
    return state


def _press(state: Calculator, id: str, system: System) -> Calculator:
    if state.shown == ERROR:
        state = Calculator()
    if id.isdigit() and len(id) == 1:
        before = "" if state.is_new or state.shown == "0" else state.shown
        enough = len(before) >= DIGITS
        return replace(state, shown=before if enough else before + id, is_new=False)
    if id in SIGNS:
        state = _worked_out(state, system)
        return replace(state, first=state.shown, sign=id, is_new=True)
    if id.startswith("memory_"):
        return _memory(state, id, system)
    match id:
        case "point":
            before = "0" if state.is_new else state.shown
            return replace(state, shown=before if "." in before else before + ".", is_new=False)
        case "equals":
            if not _is_pending(state):
                _noted(state.shown, system)
            return _worked_out(state, system)
        case "clear":
            return Calculator()
        case "back" if not state.is_new:
            return replace(state, shown=state.shown[:-1].rstrip("-") or "0")
        case "sign" if state.shown != "0":
            shown = state.shown[1:] if state.shown.startswith("-") else "-" + state.shown
            return replace(state, shown=shown)
        case "percent":
            return replace(state, shown=written(Decimal(state.shown) / 100), is_new=True)
    return state


def _is_pending(state: Calculator) -> bool:
    """Whether there is a step to be done."""
    return bool(state.sign) and not (state.is_new and not state.first)


def _noted(line: str, system: System) -> None:
    kept: Kept = system.data or Kept()
    system.keep(kept._replace(tape=(*kept.tape, line)[-TAPE_LINES:]))


def _worked_out(state: Calculator, system: System) -> Calculator:
    """State after the pending step is done."""
    if not _is_pending(state):
        return replace(state, is_new=True)
    left, right = Decimal(state.first), Decimal(state.shown)
    try:
        match state.sign:
            case "plus":
                result = _context.add(left, right)
            case "minus":
                result = _context.subtract(left, right)
            case "times":
                result = _context.multiply(left, right)
            case _:
                result = _context.divide(left, right)
    except DecimalException:
        return Calculator(ERROR)
    shown = written(result)
    _noted(f"{state.first} {SIGNS[state.sign]} {state.shown} = {shown}", system)
    return Calculator(shown)


def _memory(state: Calculator, id: str, system: System) -> Calculator:
    kept: Kept = system.data or Kept()
    before, now = Decimal(kept.memory), Decimal(state.shown)
    match id:
        case "memory_clear":
            system.keep(kept._replace(memory="0"))
        case "memory_recall":
            return replace(state, shown=kept.memory, is_new=True)
        case "memory_add":
            system.keep(kept._replace(memory=written(_context.add(before, now))))
        case "memory_less":
            system.keep(kept._replace(memory=written(_context.subtract(before, now))))
    return replace(state, is_new=True)


def written(number: Decimal) -> str:
    """Format a number as people write it, with an exponent where it is too long."""
    number = _context.plus(number)
    text = format(number, "f")
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    if len(text.strip("-").replace(".", "")) > DIGITS + 2:
        return format(number, ".6e")
    return "0" if text in ("-0", "") else text


CALCULATOR = register(App("calculator", "Calculator", "calculator", start, build, handle, size=(230, 290)))
