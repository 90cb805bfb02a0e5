"""How large an emulated desktop may become, so that no agent can fill the trainer's memory with it.

A desktop is a value that the trainer keeps, copies by reference and pickles; these bounds hold for every one.
What would go beyond them is not done, and the agent reads why in a dialog of the desktop. No task comes near.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vlrl.envs.gui.emu.state import Files
from vlrl.envs.gui.emu.strings import add_words

AREA_CHARS = 10_000
"""Most characters of a text area."""
FIELD_CHARS = 300
"""Most characters of a field of one line."""
UNDO_CHARS = 100_000
"""Most characters of all earlier texts that a window keeps."""
FILES = 400
"""Most files and folders."""
PATH_CHARS = 300
"""Longest path."""
DISK_SIZE = 1_500_000
"""Most of all files together: characters of texts, bytes of images."""
STORE_SIZE = 200_000
"""Most of what one app keeps, by `size_of`."""
WINDOWS = 80
"""Most windows, dialogs included; more than can be reached, as an app has one window that a dialog blocks."""
KEYS = 256
"""Most keys that one action presses one by one, outside of a text area."""
STROKE_POINTS = 256
"""Most places that the pointer is taken along while a button is held."""
HISTORY = 50
"""Most pages that a tab goes back."""

TOO_LONG = "There is no room for so much text."
NAME_TOO_LONG = "This name is too long."
DISK_FULL = "The disk is full."
STORE_FULL = "There is no room for more."
TOO_MANY_KEYS = "Too many keys at once."
add_words(f"""
{TOO_LONG} = Für so viel Text ist kein Platz. = Il n’y a pas assez de place. = No cabe tanto texto.
{NAME_TOO_LONG} = Dieser Name ist zu lang. = Ce nom est trop long. = Ese nombre es demasiado largo.
{DISK_FULL} = Der Datenträger ist voll. = Le disque est plein. = El disco está lleno.
{STORE_FULL} = Für mehr ist kein Platz. = Il n’y a plus de place. = No cabe nada más.
{TOO_MANY_KEYS} = Zu viele Tasten auf einmal. = Trop de touches à la fois. = Demasiadas teclas a la vez.
""")


def size_of(value: Any) -> int:
    """How much of memory a value stands for: characters, bytes, and one for everything else it is made of."""
    total, waiting = 0, [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str | bytes):
            total += 1 + len(one)
            continue
        total += 1
        if isinstance(one, tuple | list | set | frozenset):
            waiting += one
        elif isinstance(one, Mapping):
            waiting += one.keys()
            waiting += one.values()
        else:
            waiting += [getattr(one, name) for name in getattr(type(one), "__dataclass_fields__", ())]
    return total


def disk_refusal(files: Files) -> str:
    """Why a disk may not become like this, in words for a dialog; "" if it may."""
    if any(len(path) > PATH_CHARS for path in files):
        return NAME_TOO_LONG
    size = sum(size_of(file.content) for file in files.values())
    return DISK_FULL if len(files) > FILES or size > DISK_SIZE else ""
