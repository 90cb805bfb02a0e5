"""What is selected in a list of which several rows may be: by clicks with modifiers, and by a rubber band."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from vlrl.envs.gui.actions import Pixel
from vlrl.envs.gui.emu.drawing.paint import Layer
from vlrl.envs.gui.emu.input.events import Change
from vlrl.envs.gui.emu.state import Held, World
from vlrl.envs.gui.emu.update import deliver
from vlrl.envs.gui.emu.widgets.rows import Rows
from vlrl.envs.gui.emu.windows.scene import Scene


class Ground(NamedTuple):
    """Where a rubber band begins.

    Attributes:
        presses: 2 for the second of a double click, and so on.
        modifiers: keys that are held.
        selected: keys of the rows that were selected before.
        start: (x in the window, y from the top of the first row) in pixels.
    """

    presses: int
    modifiers: tuple[str, ...]
    selected: tuple[Any, ...]
    start: Pixel


def selection(owner: Rows, key: Any, modifiers: Sequence[str]) -> Any:
    """What is selected after a click on a row: its key, or with `many` a tuple of keys, the anchor first."""
    if not owner.many:
        return key
    keys, before = [line.key for line in owner.lines], tuple(owner.selected)
    if "shift" in modifiers and before and before[0] in keys:
        first, last = keys.index(before[0]), keys.index(key)
        between = keys[first : last + 1] if first <= last else keys[last : first + 1][::-1]
        return tuple(dict.fromkeys((*between, *(before if "ctrl" in modifiers else ()))))
    if "ctrl" in modifiers:
        return tuple(one for one in before if one != key) if key in before else (key, *before)
    return (key,)


def begun(world: World, layer: Layer, rows: Rows, presses: int, modifiers: Sequence[str]) -> Held | None:
    """The grip on a rubber band that begins at the pointer; None on a phone, whose finger scrolls."""
    if world.is_mobile:
        return None
    ground = Ground(presses, tuple(modifiers), tuple(rows.selected), _within(world, layer, rows))
    return Held("band", layer.number, rows.id, world.pointer, ground)


def stretch(scene: Scene, world: World, held: Held) -> World:
    """Draw the band to the pointer and select what it touches: with ctrl that is turned, with shift added."""
    layer, ground = scene.layer(world, held.window), held.data
    placed = layer.view.find(held.id) if layer else None
    if layer is None or placed is None or not isinstance(placed.widget, Rows):
        return world
    rows, end = placed.widget, _within(world, layer, placed.widget)
    touched = rows.touched(ground.start[1], end[1], layer.view.look)
    before = ground.selected if {"ctrl", "shift"} & set(ground.modifiers) else ()
    if "ctrl" in ground.modifiers:
        twice = set(before) & set(touched)
        chosen = tuple(key for key in (*before, *touched) if key not in twice)
    else:
        chosen = tuple(dict.fromkeys((*before, *touched)))
    world = world._replace(held=held._replace(path=(ground.start, end)))
    return world if chosen == rows.selected else deliver(world, held.window, Change(held.id, chosen))


def _within(world: World, layer: Layer, rows: Rows) -> Pixel:
    """Where the pointer is in a list, at its edge if it is outside: see `Ground.start`."""
    scroller = layer.view.scrollers[rows.id]
    x0, y0, x1, y1 = scroller.box
    x, y = world.pointer[0] - layer.box[0], world.pointer[1] - layer.box[1]
    return min(max(x0, x), x1 - 1), min(max(y0, y), y1 - 1) - y0 + scroller.offset
