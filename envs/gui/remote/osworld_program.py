"""What runs inside an OSWorld machine: one fixed program, and actions as data.

The machine's server runs any command that it is sent (POST /execute, desktop_env/server/main.py in OSWorld).
It is sent always the same one, ["python", "-c", PROGRAM, JSON]: what a model wrote is only ever in the JSON,
as numbers and as texts that the program types, never part of a command line or of a program.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, assert_never

from vlrl.envs.gui.actions import (
    NOTCH_PX,
    Action,
    Answer,
    ButtonDown,
    ButtonUp,
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
from vlrl.envs.gui.codecs.grammar.keys import written_key

PROGRAM = """
import json, sys, time
asked = json.loads(sys.argv[1])
mark = asked["episode"] + " " + open("/proc/sys/kernel/random/boot_id").read().strip()
if asked["begin"]:
    open(asked["file"], "w").write(mark)
try:
    found = open(asked["file"]).read()
except OSError:
    found = ""
if found != mark:
    print(json.dumps({"lost": True}))
    sys.exit()
import pyautogui
pyautogui.FAILSAFE = False
pyautogui.PAUSE = 0
known = ("moveTo", "mouseDown", "mouseUp", "click", "keyDown", "keyUp", "scroll", "hscroll", "write")
for name, arguments in asked["calls"]:
    if name == "sleep":
        time.sleep(arguments["seconds"])
    elif name in known:
        getattr(pyautogui, name)(**arguments)
    else:
        sys.exit(name)
x, y = pyautogui.position()
print(json.dumps({"pointer": [int(x), int(y)]}))
"""
"""Marks the machine when an episode begins; afterwards it does nothing where the mark is not, as on another
machine, on one that was started again or put back, or that another client has taken since."""

MARK_FILE = "/tmp/.vlrl-episode"
MAX_WAIT_MS = 10_000
"""Longer waits are cut: a model must not be able to let a deadline pass."""

_Call = tuple[str, dict[str, Any]]


def command(calls: list[_Call], episode: str, *, begin: bool = False) -> list[str]:
    """The command line for POST /execute.

    Args:
        calls: of pyautogui.
        episode: made up when it began.
        begin: it begins now.
    """
    asked = {"episode": episode, "begin": begin, "file": MARK_FILE, "calls": calls}
    return ["python", "-c", PROGRAM, json.dumps(asked)]


def calls_of(action: Action) -> list[_Call]:
    """An action as calls of pyautogui.

    Raises:
        ActionError: for one of a phone, and for text that pyautogui cannot type.
    """
    return list(_calls(action))


def _calls(action: Action) -> Iterator[_Call]:
    match action:
        case Move(point):
            yield _move(point)
        case Click(point, button, count, modifiers):
            yield from _at(point)
            yield from _holding(modifiers, [("click", {"button": button, "clicks": count, "interval": 0.05})])
        case ButtonDown(button, point):
            yield from _at(point)
            yield "mouseDown", {"button": button}
        case ButtonUp(button, point):
            yield from _at(point)
            yield "mouseUp", {"button": button}
        case Drag(path, button, modifiers):
            yield _move(path[0])
            moves: list[_Call] = [("moveTo", {"x": x, "y": y, "duration": 0.2}) for x, y in path[1:]]
            held = [("mouseDown", {"button": button}), *moves, ("mouseUp", {"button": button})]
            yield from _holding(modifiers, held)
        case Scroll(dx, dy, point):
            yield from _at(point)
            yield from [("scroll", {"clicks": -_notches(dy)})] if dy else []
            yield from [("hscroll", {"clicks": _notches(dx)})] if dx else []
        case TypeText(text):
            if not all(character in "\n\t" or " " <= character <= "~" for character in text):
                raise _cannot("this desktop can type ASCII only")
            yield from _typed(text)
        case Key(keys):
            yield from _holding(keys, [])
        case KeyDown(key):
            yield from (("keyDown", {"key": name}) for name in _key_names(key))
        case KeyUp(key):
            yield from (("keyUp", {"key": name}) for name in reversed(_key_names(key)))
        case Wait(duration_ms):
            yield "sleep", {"seconds": min(duration_ms, MAX_WAIT_MS) / 1000}
        case Answer() | Finish():
            return
        case LongPress() | Swipe() | SystemButton() | OpenApp():
            raise _cannot(f"a desktop has no {type(action).__name__}")
        case _:
            assert_never(action)


def _at(point: Pixel | None) -> Iterator[_Call]:
    if point is not None:
        yield _move(point)


def _move(point: Pixel) -> _Call:
    return "moveTo", {"x": point[0], "y": point[1]}


def _holding(keys: tuple[str, ...], calls: list[_Call]) -> Iterator[_Call]:
    names = [name for key in keys for name in _key_names(key)]
    yield from (("keyDown", {"key": name}) for name in names)
    yield from calls
    yield from (("keyUp", {"key": name}) for name in reversed(names))


def _typed(text: str) -> Iterator[_Call]:
    """Text as it is; pyautogui itself types ">" for "<".

    On X's keyboards "<" is the first sign of the key beside the left shift key; pyautogui presses that key,
    and shift with it, as it takes "<" for a shifted sign (its issues 198 and 465).
    """
    for number, part in enumerate(text.split("<")):
        if number:
            yield from _holding(("<",), [])
        if part:
            yield "write", {"message": part}


def _key_names(name: str) -> tuple[str, ...]:
    """A key of KEY_NAMES in pyautogui's words; one of them as a chord, see `_typed`."""
    return ("shift", ",") if name == "<" else (written_key(name, "pyautogui"),)


def _notches(pixels: int) -> int:
    """Whole ones, at least one."""
    whole = max(round(abs(pixels) / NOTCH_PX), 1)
    return whole if pixels > 0 else -whole


def _cannot(reason: str) -> ActionError:
    return ActionError("unknown_action", reason, (0, 0))
