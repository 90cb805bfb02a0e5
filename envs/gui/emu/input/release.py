"""What happens when the button is let go: a click is done where it began, what was dragged is dropped."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from vlrl.envs.gui.emu.drawing.paint import Layer
from vlrl.envs.gui.emu.input import screen_keys
from vlrl.envs.gui.emu.input.band import selection
from vlrl.envs.gui.emu.input.events import Change, Command, Drop, Stroke
from vlrl.envs.gui.emu.state import Held, World
from vlrl.envs.gui.emu.update import deliver
from vlrl.envs.gui.emu.widgets.base import Placed
from vlrl.envs.gui.emu.widgets.controls import Slider
from vlrl.envs.gui.emu.widgets.rows import RowOf, Rows
from vlrl.envs.gui.emu.windows import menus, wm
from vlrl.envs.gui.emu.windows.scene import BACKDROP, Scene, on_screen, widget_at
from vlrl.envs.gui.emu.windows.screen_keyboard import KEYBOARD


def release(scene: Scene, world: World) -> World:
    """Let the left button go: what was pressed is done where it was pressed, what was dragged is dropped."""
    held = world.held
    if held is None:
        return world
    world = world._replace(held=None)
    if held.grip == "menu":
        if held.id and world.pointer == held.start:
            return world  # a long list that opened under the pointer: nothing has been chosen yet
        return menus.choose_at(scene, world, *world.pointer)
    if held.grip == "press" and held.window == 0:
        return _release_on_desktop(scene, world, held)
    layer = scene.layer(world, held.window)
    if layer is None:
        return world
    if held.grip == "stroke":
        return _stroke(world, layer, held)
    if held.grip == "band":
        return _end_band(scene, world, layer, held)
    if held.grip not in ("press", "row"):
        return world
    placed = layer.view.find(held.id)
    if placed is None:
        return world
    if held.grip == "row" and world.pointer != held.start and placed.widget is not _under(scene, world):
        return _drop(scene, world, layer, placed, held)
    if placed.widget is not _under(scene, world):
        return world
    return _use(world, layer, placed, held)


def _use(world: World, layer: Layer, placed: Placed, held: Held) -> World:
    """A widget was clicked."""
    widget = placed.widget
    if not widget.enabled:
        return world
    if isinstance(widget, RowOf):
        return _use_row(world, layer, placed, widget, *held.data)
    event = widget.twice if held.data == 2 and widget.twice is not None else widget.press
    return world if event is None else deliver(world, held.window, event)


def _end_band(scene: Scene, world: World, layer: Layer, held: Held) -> World:
    """A rubber band is gone; one that was not drawn was a click on a row, or on none."""
    placed = layer.view.find(held.id)
    if held.path or placed is None or not isinstance(placed.widget, Rows):
        return world
    under = widget_at(layer, *world.pointer)
    if under is not None and isinstance(under.widget, RowOf):
        return _use_row(world, layer, under, under.widget, held.data.presses, held.data.modifiers)
    is_bare = placed.widget.selected and not held.data.modifiers
    return deliver(world, held.window, Change(held.id, ())) if is_bare else world


def _use_row(
    world: World, layer: Layer, placed: Placed, row: RowOf, count: int, modifiers: Sequence[str]
) -> World:
    number, owner, look = layer.number, row.owner, layer.view.look
    x = world.pointer[0] - layer.box[0]
    if row.line.open is not None:
        arrow = row.arrow(placed.box, look)
        if arrow[0] <= x < arrow[2]:
            return deliver(world, number, Command(f"{owner.id}.toggle", row.line.key))
    is_touch = look.form == "mobile" and not modifiers
    if is_touch and owner.many:  # a tap opens; once a finger was held, it goes on with the selection
        event = Change(owner.id, selection(owner, row.line.key, ("ctrl",))) if owner.selected else row.twice
        return world if event is None else deliver(world, number, event)
    if count == 1:
        world = deliver(world, number, Change(owner.id, selection(owner, row.line.key, modifiers)))
    if row.twice is not None and (count == 2 or is_touch):
        world = deliver(world, number, row.twice)
    return world


def _stroke(world: World, layer: Layer, held: Held) -> World:
    placed = layer.view.find(held.id)
    if placed is None:
        return world
    left, top = layer.box[0] + placed.box[0], layer.box[1] + placed.box[1]
    path = tuple((x - left, y - top) for x, y in held.path)
    return deliver(world, layer.number, Stroke(held.id, path))


def _under(scene: Scene, world: World) -> Any:
    """The widget under the pointer."""
    layer = scene.at(world, *world.pointer)
    placed = widget_at(layer, *world.pointer) if layer else None
    return placed.widget if placed else None


def _drop(scene: Scene, world: World, layer: Layer, placed: Placed, held: Held) -> World:
    row, target = placed.widget, scene.at(world, *world.pointer)
    if not isinstance(row, RowOf) or not row.owner.drags or target is None or not isinstance(target.key, int):
        return world
    if wm.dialog_of(world, target.key) != target.key:
        return world
    over = widget_at(target, *world.pointer)
    if over is None:
        return world
    owner = over.widget.owner if isinstance(over.widget, RowOf) else over.widget
    return deliver(world, target.key, Drop(owner.id, row.line.key, over.widget.drop_key))


def _release_on_desktop(scene: Scene, world: World, held: Held) -> World:
    layer = scene.at(world, *world.pointer)
    placed = widget_at(layer, *world.pointer) if layer else None
    if layer is None or placed is None or placed.widget.id != held.id or isinstance(layer.key, int):
        return world
    if layer.key == KEYBOARD:
        return screen_keys.tapped(scene, world, held.id)
    event = placed.widget.press
    if isinstance(placed.widget, Slider):
        number = placed.widget.at(world.pointer[0] - layer.box[0], placed.box, layer.view.look)
        return world._replace(settings={**world.settings, held.id: number})
    if held.data == 2 or event is not None:
        event = placed.widget.twice or event
    id = event.id if isinstance(event, Command) else placed.widget.id
    if layer.key == BACKDROP and event is None:
        return world
    return menus.desktop_command(world, id, on_screen(layer, placed.box) if layer.key != BACKDROP else None)
