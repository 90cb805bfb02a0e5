"""The text of an oracle's action, in grammars that cannot express just that action."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from vlrl.envs.gui.actions import (
    Action,
    Drag,
    Key,
    Move,
    Pixel,
    Scroll,
    Swipe,
    SystemButton,
    points_of,
)
from vlrl.envs.gui.codecs.codec import ActionError, Codec, View


def next_words(codec: Codec, action: Action, view: View) -> str:
    """The text of an action, or of what comes to the same.

    Where drags and scrolls start where the pointer is, and it is elsewhere, that is the move there; asked
    again with the pointer at that place, the action itself. Where there is only a finger, a scroll
    is the swipe that moves what lies under it as far, a drag is a swipe, and enter is a phone's button.
    Where a swipe has no places, the one that scrolls is a scroll in its direction.

    Raises:
        ActionError: kind "unknown_action" if nothing of that can be said.
    """
    try:
        return codec.format(action, view)
    except ActionError:
        for text in _other_ways(codec, action, view):
            return text
        raise


def _other_ways(codec: Codec, action: Action, view: View) -> Iterator[str]:
    for start in points_of(action)[:1]:
        move = _said(codec, Move(start), view)
        arrived = move and points_of(codec.parse(move, view))
        there = replace(view, pointer=arrived[0]) if arrived else view
        if move and there.pointer != view.pointer and _said(codec, action, there):
            yield move
    by_hand = _with_a_finger(action, view)
    words = by_hand and _said(codec, by_hand, view)
    if words:
        yield words
    if isinstance(action, Swipe):
        (x, y), (to_x, to_y) = action.start, action.end
        for point in (((x + to_x) // 2, (y + to_y) // 2), None):
            scrolled = _said(codec, Scroll(x - to_x, y - to_y, point), view)
            if scrolled:
                yield scrolled


def _said(codec: Codec, action: Action, view: View) -> str | None:
    try:
        return codec.format(action, view)
    except ActionError:
        return None


def _with_a_finger(action: Action, view: View) -> Action | None:
    match action:
        case Scroll():
            return _as_swipe(action, view)
        case Drag(path=(start, end), button="left", modifiers=()):
            return Swipe(start, end)
        case Key(keys=("enter",)):
            return SystemButton("enter")
    return None


def _as_swipe(scroll: Scroll, view: View) -> Swipe:
    width, height = view.screen
    x, y = scroll.point or (width // 2, height // 2)

    def on_screen(along: int, down: int) -> Pixel:
        return min(max(along, 0), width - 1), min(max(down, 0), height - 1)

    start = on_screen(x + scroll.dx // 2, y + scroll.dy // 2)
    return Swipe(start, on_screen(start[0] - scroll.dx, start[1] - scroll.dy))
