"""Typed actions as events of the DevTools Protocol: what mouse, wheel, keyboard and fingers would send.

    Action ──► BrowserInput ──► batches of commands sent together, and the time that passes after each

Points become CSS pixels: the middle of a pixel of the screen, divided by the scale of the image.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias

from vlrl.envs.gui.actions import (
    Action,
    ButtonDown,
    ButtonUp,
    Click,
    Drag,
    Key,
    KeyDown,
    KeyUp,
    LongPress,
    Move,
    Pixel,
    Scroll,
    Swipe,
    SystemButton,
    TypeText,
    Wait,
)
from vlrl.envs.gui.screen import Form
from vlrl.envs.gui.web.keys import KEYS, MODIFIER_BITS, BrowserKey, shifted

Command: TypeAlias = tuple[str, dict[str, Any]]

_MOUSE, _TOUCH, _KEY = "Input.dispatchMouseEvent", "Input.dispatchTouchEvent", "Input.dispatchKeyEvent"
_BUTTON_BITS = {"left": 1, "right": 2, "middle": 4}
_NUM_MOVES = 6  # between two points of a path
_FRAME_MS = 16
_MOST_WAIT_MS = 60_000


@dataclass(frozen=True, slots=True)
class CommandBatch:
    """Commands sent together, and the milliseconds of virtual time that pass after them."""

    commands: Sequence[Command]
    pause_ms: int = 0


class BrowserInput:
    """The state of mouse, keyboard and touch screen, and an action as commands that change it.

    Attributes:
        pointer: a pixel of the screen.
    """

    def __init__(self, scale: float, form: Form, pointer: Pixel) -> None:
        self.scale, self.form, self.pointer = scale, form, pointer
        self._buttons = self._modifiers = 0
        self._touch_s = 0.0

    def batches(self, action: Action) -> Iterator[CommandBatch]:
        """The commands for an action, in the order in which to send them."""
        match action:
            case Move(point=point):
                yield CommandBatch([self._move(point)])
            case Click() if self.form == "mobile" and action.button == "left":
                yield from self._tap(action)
            case Click():
                yield from self._click(action)
            case ButtonDown(button=button, point=point):
                yield CommandBatch([self._move(point or self.pointer), self._press(button)])
            case ButtonUp(button=button, point=point):
                yield CommandBatch([self._move(point or self.pointer), self._release(button)])
            case Drag() if self.form == "mobile" and action.button == "left":
                yield from self._finger(action.path, _FRAME_MS * _NUM_MOVES * (len(action.path) - 1))
            case Drag():
                yield from self._drag(action)
            case Scroll(dx=dx, dy=dy, point=point):
                yield CommandBatch([self._move(point or self.pointer), self._wheel(dx, dy)])
            case LongPress(point=point, duration_ms=duration_ms):
                yield from self._hold(point, point, min(duration_ms, _MOST_WAIT_MS))
            case Swipe(start=start, end=end, duration_ms=duration_ms):
                yield from self._hold(start, end, min(duration_ms, _MOST_WAIT_MS))
            case TypeText(text=text):
                yield CommandBatch([command for letter in text for command in self._letter(letter)])
            case Key(keys=keys):
                downs = [self._key(key, down=True) for key in keys]
                yield CommandBatch([*downs, *(self._key(key, down=False) for key in reversed(keys))])
            case KeyDown(key=key):
                yield CommandBatch([self._key(key, down=True)])
            case KeyUp(key=key):
                yield CommandBatch([self._key(key, down=False)])
            case SystemButton(name="enter"):
                yield CommandBatch([self._key("enter", down=True), self._key("enter", down=False)])
            case Wait(duration_ms=duration_ms):
                yield CommandBatch([], min(max(duration_ms, 0), _MOST_WAIT_MS))

    def _click(self, action: Click) -> Iterator[CommandBatch]:
        held = [key for key in ("ctrl", "shift", "alt", "super") if key in action.modifiers]
        commands = [self._key(key, down=True) for key in held]
        commands.append(self._move(action.point or self.pointer))
        for count in range(1, action.count + 1):
            commands += [self._press(action.button, count), self._release(action.button, count)]
        yield CommandBatch([*commands, *(self._key(key, down=False) for key in reversed(held))])

    def _drag(self, action: Drag) -> Iterator[CommandBatch]:
        held = list(action.modifiers)
        downs = [self._key(key, down=True) for key in held]
        yield CommandBatch([*downs, self._move(action.path[0]), self._press(action.button)], _FRAME_MS)
        for start, end in pairwise(action.path):
            # Each move by itself: the browser makes one of several that wait.
            for point in _between(start, end):
                yield CommandBatch([self._move(point)], _FRAME_MS)
        ups = [self._key(key, down=False) for key in reversed(held)]
        yield CommandBatch([self._release(action.button), *ups])

    def _tap(self, action: Click) -> Iterator[CommandBatch]:
        for _ in range(action.count):
            yield from self._hold(action.point or self.pointer, None, _FRAME_MS)

    def _hold(self, start: Pixel, end: Pixel | None, duration_ms: int) -> Iterator[CommandBatch]:
        """A finger, or on a desktop the mouse: down at `start`, to `end`, up."""
        if self.form == "desktop":
            yield CommandBatch(
                [self._move(start), self._press("left")], duration_ms if start == end else _FRAME_MS
            )
            for point in _between(start, end or start) if start != end else ():
                yield CommandBatch([self._move(point)], duration_ms // _NUM_MOVES)
            yield CommandBatch([self._release("left")])
            return
        yield from self._finger((start, end or start), duration_ms)

    def _finger(self, path: Sequence[Pixel], duration_ms: int) -> Iterator[CommandBatch]:
        start, end = path[0], path[-1]
        is_still = all(point == start for point in path)
        yield CommandBatch([self._touch("touchStart", start)], duration_ms if is_still else 0)
        if not is_still:
            ways = list(pairwise(path))
            for point in (point for way in ways for point in _between(*way)):
                yield CommandBatch([self._touch("touchMove", point)], duration_ms // (_NUM_MOVES * len(ways)))
            self._touch_s += 0.2  # a finger that rests before it lifts: what it moved stops with it
            yield CommandBatch([self._touch("touchMove", end)])
        self.pointer = end
        yield CommandBatch([self._touch("touchEnd", None)])

    def _move(self, point: Pixel) -> Command:
        self.pointer = point
        return self._mouse("mouseMoved", "none", 0)

    def _press(self, button: str, count: int = 1) -> Command:
        self._buttons |= _BUTTON_BITS[button]
        return self._mouse("mousePressed", button, count)

    def _release(self, button: str, count: int = 1) -> Command:
        self._buttons &= ~_BUTTON_BITS[button]
        return self._mouse("mouseReleased", button, count)

    def _mouse(self, kind: str, button: str, count: int, **more: float) -> Command:
        held = next((name for name, bit in _BUTTON_BITS.items() if self._buttons & bit), "none")
        event = {
            **{"type": kind, "button": held if button == "none" else button, "buttons": self._buttons},
            **{"clickCount": count, "modifiers": self._modifiers, **self.place(self.pointer), **more},
        }
        return _MOUSE, event

    def _wheel(self, dx: int, dy: int) -> Command:
        return self._mouse("mouseWheel", "none", 0, deltaX=dx / self.scale, deltaY=dy / self.scale)

    def _touch(self, kind: str, point: Pixel | None) -> Command:
        self._touch_s += _FRAME_MS / 1000  # the browser distinguishes a fling from a drag by these
        points = [] if point is None else [self.place(point)]
        return _TOUCH, {"type": kind, "touchPoints": points, "timestamp": 1e6 + self._touch_s}

    def _letter(self, letter: str) -> Sequence[Command]:
        name = {"\n": "enter", "\t": "tab", " ": "space"}.get(letter, letter)
        if len(letter) != 1 or name not in KEYS:
            return [("Input.insertText", {"text": letter})] if letter.isprintable() else []
        return [self._stroke(KEYS[name], down=True), self._stroke(KEYS[name], down=False)]

    def _key(self, name: str, *, down: bool) -> Command:
        bit = MODIFIER_BITS.get(name, 0)
        self._modifiers = self._modifiers | bit if down else self._modifiers & ~bit
        key = KEYS[name]
        return self._stroke(shifted(key) if self._modifiers & MODIFIER_BITS["shift"] else key, down=down)

    def _stroke(self, key: BrowserKey, *, down: bool) -> Command:
        types = key.text if down and not self._modifiers & ~MODIFIER_BITS["shift"] else ""
        event = {
            **{"type": "keyUp" if not down else "keyDown" if types else "rawKeyDown", "key": key.key},
            **{"code": key.code, "windowsVirtualKeyCode": key.number, "modifiers": self._modifiers},
        }
        return _KEY, {**event, "text": types, "unmodifiedText": types} if types else event

    def place(self, point: Pixel) -> dict[str, float]:
        """A pixel's middle in CSS pixels."""
        return {"x": (point[0] + 0.5) / self.scale, "y": (point[1] + 0.5) / self.scale}


def _between(start: Pixel, end: Pixel) -> Iterator[Pixel]:
    """Points on the way from one to the other, the last one included."""
    for step in range(1, _NUM_MOVES + 1):
        share = step / _NUM_MOVES
        yield round(start[0] + (end[0] - start[0]) * share), round(start[1] + (end[1] - start[1]) * share)
