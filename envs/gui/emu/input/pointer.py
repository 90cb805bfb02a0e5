"""What the buttons of a pointer do: press, move, release; a click is the first and the last of these."""

from __future__ import annotations

from collections.abc import Sequence

from vlrl.envs.gui.actions import Pixel
from vlrl.envs.gui.emu import limits
from vlrl.envs.gui.emu.drawing.paint import Layer
from vlrl.envs.gui.emu.input import band, editing, text
from vlrl.envs.gui.emu.input.events import Change
from vlrl.envs.gui.emu.state import Box, Held, TextCursor, World
from vlrl.envs.gui.emu.update import deliver
from vlrl.envs.gui.emu.widgets.base import Placed
from vlrl.envs.gui.emu.widgets.canvas import Canvas
from vlrl.envs.gui.emu.widgets.containers import ScrollBar
from vlrl.envs.gui.emu.widgets.controls import Choice, Slider
from vlrl.envs.gui.emu.widgets.entry import Entry
from vlrl.envs.gui.emu.widgets.menus import MenuTitle
from vlrl.envs.gui.emu.widgets.rows import RowOf, Rows
from vlrl.envs.gui.emu.windows import menus, wm
from vlrl.envs.gui.emu.windows.frame import Frame, TitleBar
from vlrl.envs.gui.emu.windows.scene import BAR, Scene, on_screen, widget_at
from vlrl.envs.gui.emu.windows.shade import SHADE, scrolled

PAGE_EIGHTHS = 7
"""How much of what is seen goes at most, where only a direction was said: the last rows stay in sight."""


def press(scene: Scene, world: World, count: int = 1, modifiers: Sequence[str] = ()) -> World:
    """Press the left button; `count` 2 and 3 are the second and third press of a double or triple click."""
    x, y = world.pointer
    layer = scene.at(world, x, y)
    if world.popup is not None:
        if layer is not None and layer.is_menu:
            return world._replace(held=Held("menu", 0, "", (x, y)))
        return menus.close(world)._replace(held=Held("nothing", 0, "", (x, y)))
    if world.shade is not None and not (layer is not None and _stays_open(world, layer)):
        return world._replace(shade=None, held=Held("nothing", 0, "", (x, y)))
    if layer is None:
        return world
    if not isinstance(layer.key, int):
        placed, front = widget_at(layer, x, y), wm.front(world)
        if placed is not None and isinstance(placed.widget, MenuTitle) and front is not None:
            title, box = placed.widget, on_screen(layer, placed.box)
            world = menus.open_menu(world, front.number, title.id, "menu", title.items, box)
            return world._replace(held=Held("menu", front.number, title.id, (x, y)))
        return world._replace(held=Held("press", 0, placed.widget.id if placed else "", (x, y), count))
    world = wm.to_front(world, layer.key)
    if wm.dialog_of(world, layer.key) != layer.key:  # a dialog blocks it
        return world._replace(held=Held("nothing", 0, "", (x, y)))
    found = scene.layer(world, layer.key)
    assert found is not None
    placed = widget_at(found, x, y)
    if placed is None:
        return world
    return _press_on(world, found, placed, count, modifiers)


def _stays_open(world: World, layer: Layer) -> bool:
    """Whether the shade stays open when one presses there: on itself, and on the buttons of a phone."""
    return layer.key == SHADE or (world.is_mobile and layer.key == BAR)


def _press_on(world: World, layer: Layer, placed: Placed, count: int, modifiers: Sequence[str]) -> World:
    assert isinstance(layer.key, int)
    widget, number, point = placed.widget, layer.key, world.pointer
    x, y = point[0] - layer.box[0], point[1] - layer.box[1]
    held = Held("press", number, widget.id, point, count)
    match widget:
        case Frame():
            sides = widget.sides_at(x, y, placed.box)
            held = Held("resize" if sides else "nothing", number, sides, point, layer.box)
        case TitleBar() if count == 1:
            near = y < 3 and layer.view.look.form != "mobile"
            held = Held("resize" if near else "move", number, "t" if near else "", point, layer.box)
        case TitleBar():
            world = wm.command(world, number, "maximize")
        case Entry() if widget.enabled:
            at = widget.offset_at(x, y, placed.box, layer.view)
            cursor = _cursor_at(widget, widget.cursor(layer.view), at, count, "shift" in modifiers)
            world = editing.set_cursor(world, number, widget.id, cursor)
            held = Held("text" if count == 1 else "nothing", number, widget.id, point)
        case Slider() if widget.enabled:
            world = deliver(world, number, Change(widget.id, widget.at(x, placed.box, layer.view.look)))
            held = Held("slider", number, widget.id, point)
        case ScrollBar():
            top, bottom = widget.thumb(placed.box)
            if top <= y < bottom:
                held = Held("thumb", number, widget.of, point, widget.offset)
            else:
                page = placed.box[3] - placed.box[1]
                world = editing.scroll_by(
                    world, number, layer.view, widget.of, page if y >= bottom else -page
                )
                held = Held("nothing", number, "", point)
        case MenuTitle() | Choice() if widget.enabled:
            kind = "choice" if isinstance(widget, Choice) else "menu"
            box = on_screen(layer, placed.box)
            world = menus.open_menu(world, number, widget.id, kind, widget.items, box)
            held = Held("menu", number, widget.id, point)
        case Canvas():
            held = Held("stroke", number, widget.id, point, None, (point,))
        case RowOf():
            world = editing.focus(world, number, widget.owner.id)
            held = Held("row", number, widget.id, point, (count, tuple(modifiers)))
            if widget.is_ground(x):
                held = band.begun(world, layer, widget.owner, count, modifiers) or held
        case Rows() if widget.many:
            held = band.begun(world, layer, widget, count, modifiers) or held
        case _:
            pass
    if widget.takes_focus and widget.enabled:
        world = editing.focus(world, number, widget.id)
    return world._replace(held=held)


def _cursor_at(entry: Entry, before: TextCursor, at: int, count: int, extend: bool) -> TextCursor:
    """Cursor after a click, a double click (a word) or a triple click (a line) at a place of the text."""
    if count == 1:
        return text.moved(before, at, extend)
    return text.word_at(entry.text, at) if count == 2 else text.paragraph_at(entry.text, at)


def move(scene: Scene, world: World, to: Pixel) -> World:
    """Move the pointer, with what the held button has hold of."""
    if to == world.pointer:
        return world
    world = world._replace(pointer=to)
    held = world.held
    if world.popup is not None and (held is None or held.grip == "menu"):
        return menus.hover(scene, world)
    if held is None:
        return world
    dx, dy = to[0] - held.start[0], to[1] - held.start[1]
    match held.grip:
        case "move":
            return wm.move_window(world, held.window, held.data, dx, dy)
        case "resize":
            return wm.resize_window(world, held.window, held.data, held.id, dx, dy)
        case "stroke":
            path = held.path if len(held.path) >= limits.STROKE_POINTS else (*held.path, to)
            return world._replace(held=held._replace(path=path))
        case "band":
            return band.stretch(scene, world, held)
        case "text" | "slider" | "thumb":
            return _drag_within(scene, world, held, dy)
        case _:
            return world


def _drag_within(scene: Scene, world: World, held: Held, dy: int) -> World:
    layer = scene.layer(world, held.window)
    placed = layer.view.find(held.id) if layer else None
    if layer is None or placed is None:
        return world
    x, y = world.pointer[0] - layer.box[0], world.pointer[1] - layer.box[1]
    match placed.widget:
        case Entry() as entry if held.grip == "text":
            at = entry.offset_at(x, y, placed.box, layer.view)
            cursor = text.moved(entry.cursor(layer.view), at, True)
            return editing.set_cursor(world, held.window, held.id, cursor)
        case Slider() as slider if held.grip == "slider":
            number = slider.at(x, placed.box, layer.view.look)
            return world if number == slider.number else deliver(world, held.window, Change(held.id, number))
    if held.grip == "thumb" and held.id in layer.view.scrollers:
        scroller = layer.view.scrollers[held.id]
        high = scroller.box[3] - scroller.box[1]
        offset = held.data + dy * scroller.content // max(1, high)
        return editing.scroll_to(world, held.window, layer.view, held.id, offset)
    return world


def context(scene: Scene, world: World) -> World:
    """The right button, or a finger held: the context menu of what is there."""
    if world.popup is not None:
        return menus.close(world)
    x, y = world.pointer
    layer = scene.at(world, x, y)
    if layer is None or not isinstance(layer.key, int):
        return world
    world = wm.to_front(world, layer.key)
    layer = scene.layer(world, layer.key)
    if layer is None or wm.dialog_of(world, layer.number) != layer.key:
        return world
    placed = widget_at(layer, x, y)
    if placed is None or not placed.widget.enabled:
        return world
    number, widget, items = layer.number, placed.widget, placed.widget.menu
    on = None
    if isinstance(widget, RowOf):
        on = widget.line.key
        picks = world.is_mobile and widget.owner.many  # a finger that is held begins a selection
        if on not in widget.owner.selected:
            chosen = band.selection(widget.owner, on, ("ctrl",) if picks else ())
            world = deliver(world, number, Change(widget.owner.id, chosen))
            layer = scene.layer(world, number)
            found = layer.view.find(widget.id) if layer else None
            items = found.widget.menu if found else items
        if picks:
            return world
    elif isinstance(widget, Entry):
        items = items or menus.edit_items()
    if widget.takes_focus:
        world = editing.focus(world, number, widget.id)
    if not items:
        return world
    at: Box = (x, y, x, y)
    return menus.open_menu(world, number, widget.id, "context", items, at, on)


def wheel(scene: Scene, world: World, dy: int, within_page: bool = False) -> World:
    """Turn the wheel over what scrolls under the pointer; within_page limits it to most of its height."""
    above = scene.at(world, *world.pointer) if world.shade is not None and dy else None
    if above is not None and above.key == SHADE:
        return scrolled(world, above.view.look, dy, within_page)
    found = scroller_under(scene, world)
    if found is None:
        return world
    layer, id = found
    if within_page:
        _, top, _, bottom = layer.view.scrollers[id].box
        page = max(1, (bottom - top) * PAGE_EIGHTHS // 8)
        dy = min(max(-page, dy), page)
    world = editing.scroll_by(world, layer.number, layer.view, id, dy)
    held = world.held
    return band.stretch(scene, world, held) if held is not None and held.grip == "band" else world


def scroller_under(scene: Scene, world: World) -> tuple[Layer, str] | None:
    """The innermost part under the pointer that scrolls: its layer and id."""
    x, y = world.pointer
    layer = scene.at(world, x, y)
    if layer is None or not isinstance(layer.key, int):
        return None
    x, y = x - layer.box[0], y - layer.box[1]
    for id, scroller in reversed(layer.view.scrollers.items()):
        x0, y0, x1, y1 = scroller.box
        if scroller.last and x0 <= x < x1 and y0 <= y < y1:
            return layer, id
    return None
