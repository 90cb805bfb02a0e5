"""The window manager: where windows are and which is in front."""

from __future__ import annotations

from typing import Any

from vlrl.envs.gui.emu.app import APPS, Reader
from vlrl.envs.gui.emu.drawing.look import Look, look_of
from vlrl.envs.gui.emu.state import Box, Interface, Window, World, with_window

LEAST_SIZE = (140, 90)


def bar_size(look: Look) -> int:
    """Height in pixels of the task bar at the top or bottom, and of the lower bar of a phone."""
    return look.row + look.unit


def work_area(world: World) -> Box:
    """Where windows may be: the screen without the task bar, or the two bars of a phone."""
    look, (width, height) = look_of(world.settings), world.size
    if look.family.margins is not None and look.form == "desktop":
        left, top, right, bottom = look.family.margins(look, world.size)
        return left, top, width - right, height - bottom
    bar = bar_size(look)
    if look.form == "mobile":
        return 0, look.line + 6, width, height - bar
    match look.bar_side:
        case "top":
            return 0, bar, width, height
        case "left":
            return side_bar_width(look), 0, width, height
        case _:
            return 0, 0, width, height - bar


def side_bar_width(look: Look) -> int:
    """Width of a task bar at the left side."""
    return look.row * 2


def box_of(world: World, window: Window) -> Box:
    """Where a window is now."""
    is_full = window.is_maximized or (not window.parent and world.is_mobile)
    return work_area(world) if is_full else window.box


def open_window(world: World, app: str, state: Any, parent: int = 0, reply: str = "") -> World:
    """A new window in front; a dialog in the middle of its parent."""
    look, area = look_of(world.settings), work_area(world)
    needed = APPS[app].build(state, Reader(world, app)).measure(look)
    wide = max(APPS[app].size[0] * look.font.size // 13, needed[0] + 8)
    high = max(APPS[app].size[1] * look.font.size // 13 + look.extra, needed[1] + look.title + 6)
    wide, high = min(wide, area[2] - area[0] - 8), min(high, area[3] - area[1] - 8)
    above = world.window(parent)
    if above is not None:
        over = box_of(world, above)
        left, top = (over[0] + over[2] - wide) // 2, (over[1] + over[3] - high) // 2
    else:
        shift = sum(not window.parent for window in world.windows) * (look.row + 4)
        free = max(1, area[2] - area[0] - wide), max(1, area[3] - area[1] - high)
        left, top = area[0] + (free[0] // 3 + shift) % free[0], area[1] + (free[1] // 3 + shift) % free[1]
    left = min(max(area[0], left), max(area[0], area[2] - wide))
    top = min(max(area[1], top), max(area[1], area[3] - high))
    number = world.next_number
    box, interface = (left, top, left + wide, top + high), Interface(APPS[app].focus)
    kind = world.settings.get("windows") if not parent else ""
    if kind == "tiled":
        box = _tile(box, area, sum(not window.parent for window in world.windows))
    is_full = kind == "maximised"
    window = Window(number, app, state, box, interface, is_maximized=is_full, parent=parent, reply=reply)
    return world._replace(windows=(*world.windows, window), next_number=number + 1, popup=None)


def _tile(box: Box, area: Box, count: int) -> Box:
    """One half of the screen and then the other, for a window that is no wider than that."""
    middle = (area[0] + area[2]) // 2
    if box[2] - box[0] > middle - area[0]:
        return box
    return (area[0], area[1], middle, area[3]) if count % 2 == 0 else (middle, area[1], area[2], area[3])


def front(world: World) -> Window | None:
    """The window that has the keys."""
    window: Window
    for window in reversed(world.windows):  # asked several times a step
        if not (window.is_minimized or (window.parent and is_hidden(world, window))):
            return window
    return None


def is_hidden(world: World, window: Window) -> bool:
    """Whether it is minimised, or its parent is."""
    above = world.window(window.parent) if window.parent else None
    return window.is_minimized or (above is not None and is_hidden(world, above))


def family(world: World, number: int) -> list[int]:
    """A window, and the dialogs that it and they have opened."""
    found = [number]
    for window in world.windows:
        if window.parent in found and window.number not in found:
            found.append(window.number)
    return found


def dialog_of(world: World, number: int) -> int:
    """The number of the dialog that blocks a window, or its own."""
    return family(world, number)[-1]


def top_of(world: World, number: int) -> int:
    """The window at the root of a dialog's parents."""
    window = world.window(number)
    return number if window is None or not window.parent else top_of(world, window.parent)


def to_front(world: World, number: int) -> World:
    """Raise a window with its dialogs and show it if it was minimised."""
    chosen = family(world, top_of(world, number))
    raised = tuple(window for window in world.windows if window.number in chosen)
    if world.windows[-len(raised) :] == raised and not any(window.is_minimized for window in raised):
        return world
    kept = tuple(window for window in world.windows if window.number not in chosen)
    shown = tuple(window._replace(is_minimized=False) if window.is_minimized else window for window in raised)
    return world._replace(windows=(*kept, *shown))


def close(world: World, number: int) -> World:
    """Take a window and its dialogs away."""
    gone = family(world, number)
    windows = tuple(window for window in world.windows if window.number not in gone)
    return world._replace(windows=windows, popup=None)


def minimize(world: World, number: int) -> World:
    """Hide a window, behind all others."""
    window = world.window(top_of(world, number))
    if window is None:
        return world
    others = tuple(other for other in world.windows if other.number != window.number)
    return world._replace(windows=(window._replace(is_minimized=True), *others))


def command(world: World, number: int, name: str) -> World:
    """What the buttons of a frame do, except to close."""
    window = world.window(number)
    if window is None:
        return world
    match name:
        case "minimize":
            return minimize(world, number)
        case "maximize":
            return with_window(world, window._replace(is_maximized=not window.is_maximized))
        case _:
            return world


def move_window(world: World, number: int, box: Box, dx: int, dy: int) -> World:
    """A window dragged from where it was; its title bar stays within reach."""
    window, area = world.window(number), work_area(world)
    if window is None or window.is_maximized:
        return world
    wide, high = box[2] - box[0], box[3] - box[1]
    left = min(max(area[0] + 48 - wide, box[0] + dx), area[2] - 48)
    top = min(max(area[1], box[1] + dy), area[3] - 24)
    return with_window(world, window._replace(box=(left, top, left + wide, top + high)))


def resize_window(world: World, number: int, box: Box, sides: str, dx: int, dy: int) -> World:
    """A window whose edges (of "left", "right", "top", "bottom", by their first letters) were dragged."""
    window, area = world.window(number), work_area(world)
    if window is None or window.is_maximized:
        return world
    x0, y0, x1, y1 = box
    if "l" in sides:
        x0 = min(max(area[0], x0 + dx), x1 - LEAST_SIZE[0])
    if "r" in sides:
        x1 = max(min(area[2], x1 + dx), x0 + LEAST_SIZE[0])
    if "t" in sides:
        y0 = min(max(area[1], y0 + dy), y1 - LEAST_SIZE[1])
    if "b" in sides:
        y1 = max(min(area[3], y1 + dy), y0 + LEAST_SIZE[1])
    return with_window(world, window._replace(box=(x0, y0, x1, y1)))
