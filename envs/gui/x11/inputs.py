"""Typed actions as events of the XTEST extension: the server does with them what it does with hands."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Sequence

from vlrl.envs.gui.actions import (
    NOTCH_PX,
    Action,
    Button,
    ButtonDown,
    ButtonUp,
    Click,
    Drag,
    Key,
    KeyDown,
    KeyUp,
    LongPress,
    Modifier,
    Move,
    Pixel,
    Scroll,
    Swipe,
    TypeText,
    Wait,
)
from vlrl.envs.gui.x11 import wire
from vlrl.envs.gui.x11.apps import CLICKS_MS
from vlrl.envs.gui.x11.keyboard import Keyboard, KeyPress

_BUTTONS: dict[Button, int] = {"left": 1, "middle": 2, "right": 3}
_WHEEL = {"up": 4, "down": 5, "left": 6, "right": 7}
_DRAG_STEP_PX = 16
_LONGEST_WAIT_MS = 30_000
_APART_S = 1.5 * CLICKS_MS / 1000
"""Between the clicks of two actions: how fast these follow each other must not make one click of theirs."""
_MOST_NOTCHES = 100


class Inputs:
    """Mouse and keyboard of one desktop."""

    def __init__(self, connection: wire.Connection, settle: Callable[[], object]) -> None:
        """`settle` waits until the apps have read what was sent."""
        self._connection, self._settle = connection, settle
        self._keyboard = Keyboard(connection)
        self._held: set[Button] = set()
        self._pressed_at = -_APART_S

    def perform(self, action: Action) -> None:
        """Do it; what has no meaning on a desktop (buttons of a phone, an answer) does nothing."""
        presses = isinstance(action, Click | ButtonDown | Drag | Swipe | LongPress)
        if presses:
            time.sleep(max(0.0, self._pressed_at + _APART_S - time.monotonic()))
        self._perform(action)
        self._connection.sync()
        if presses:
            self._pressed_at = time.monotonic()

    def _perform(self, action: Action) -> None:
        match action:
            case Move(point=point):
                self._move(point)
            case Click(point=point, button=button, count=count, modifiers=modifiers):
                self._move(point)
                self._with(modifiers, lambda: self._click(_BUTTONS[button], count))
            case ButtonDown(button=button, point=point):
                self._move(point)
                self._connection.fake(wire.BUTTON_PRESS, _BUTTONS[button])
                self._held.add(button)
            case ButtonUp(button=button, point=point):
                self._move(point)
                self._held.discard(button)
                self._connection.fake(wire.BUTTON_RELEASE, _BUTTONS[button])
            case Drag(path=path, button=button, modifiers=modifiers):
                self._with(modifiers, lambda: self._drag(path, _BUTTONS[button]))
            case Swipe(start=start, end=end):
                self._drag((start, end), _BUTTONS["left"])
            case LongPress(point=point, duration_ms=duration_ms):
                self._move(point)
                self._connection.fake(wire.BUTTON_PRESS, _BUTTONS["left"])
                self._connection.sync()
                _sleep(duration_ms)
                self._connection.fake(wire.BUTTON_RELEASE, _BUTTONS["left"])
            case Scroll(dx=dx, dy=dy, point=point):
                self._move(point)
                self._turn("down" if dy > 0 else "up", abs(dy))
                self._turn("right" if dx > 0 else "left", abs(dx))
            case TypeText(text=text):
                self._type(text)
            case Key(keys=keys):
                self._chord([self._keyboard.named(key) for key in keys])
            case KeyDown(key=key):
                self._connection.fake(wire.KEY_PRESS, self._keyboard.named(key)[0])
            case KeyUp(key=key):
                self._connection.fake(wire.KEY_RELEASE, self._keyboard.named(key)[0])
            case Wait(duration_ms=duration_ms):
                _sleep(duration_ms)

    def _move(self, point: Pixel | None) -> None:
        if point is None:
            return
        if self._held:
            self._travel((self._connection.pointer(), point))
        self._connection.fake(wire.MOTION, 0, *point)

    def _click(self, button: int, count: int = 1) -> None:
        for _ in range(count):
            self._connection.fake(wire.BUTTON_PRESS, button)
            self._connection.fake(wire.BUTTON_RELEASE, button)

    def _turn(self, direction: str, pixels: int) -> None:
        self._click(_WHEEL[direction], min(-(-pixels // NOTCH_PX), _MOST_NOTCHES))

    def _drag(self, path: Sequence[Pixel], button: int) -> None:
        self._move(path[0])
        self._connection.fake(wire.BUTTON_PRESS, button)
        self._settle()
        self._travel(path)
        self._settle()
        self._connection.fake(wire.BUTTON_RELEASE, button)

    def _travel(self, path: Sequence[Pixel]) -> None:
        """Move in steps: toolkits start a drag when they see it move, and follow only what they read later.

        What is not yet read when the next move comes is read as one with it: the first is waited for.
        """
        begun = False
        for (x0, y0), (x1, y1) in itertools.pairwise(path):
            num_steps = max(2, max(abs(x1 - x0), abs(y1 - y0)) // _DRAG_STEP_PX)
            for i in range(1, num_steps + 1):
                x, y = x0 + (x1 - x0) * i // num_steps, y0 + (y1 - y0) * i // num_steps
                self._connection.fake(wire.MOTION, 0, x, y)
                self._connection.sync()
                if not begun:
                    self._settle()
                    begun = True

    def _type(self, text: str) -> None:
        for number, keys in enumerate(self._keyboard.chunks(text)):
            if number:
                self._settle()
            for key in keys:
                self._chord([key])
            self._connection.sync()

    def _chord(self, keys: Sequence[KeyPress]) -> None:
        """Press one after the other, release in reverse; shift is held for a key that needs it."""
        shift = self._keyboard.named("shift")[0]
        held = [key for key, _ in keys]
        if any(shifted for _, shifted in keys) and shift not in held:
            held.insert(0, shift)
        for key in held:
            self._connection.fake(wire.KEY_PRESS, key)
        for key in reversed(held):
            self._connection.fake(wire.KEY_RELEASE, key)

    def _with(self, modifiers: Sequence[Modifier], act: Callable[[], None]) -> None:
        keys = [self._keyboard.named(modifier)[0] for modifier in modifiers]
        for key in keys:
            self._connection.fake(wire.KEY_PRESS, key)
        act()
        for key in reversed(keys):
            self._connection.fake(wire.KEY_RELEASE, key)


def _sleep(duration_ms: int) -> None:
    time.sleep(min(duration_ms, _LONGEST_WAIT_MS) / 1000)
