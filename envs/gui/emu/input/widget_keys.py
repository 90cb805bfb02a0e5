"""What keys do to the widget that has the focus: a text field, a list, a slider, a button."""

from __future__ import annotations

from collections.abc import Sequence

from vlrl.envs.gui.emu import update
from vlrl.envs.gui.emu.drawing.paint import Layer
from vlrl.envs.gui.emu.input import editing, text
from vlrl.envs.gui.emu.input.events import Activate, Change
from vlrl.envs.gui.emu.state import TextCursor, World
from vlrl.envs.gui.emu.widgets.base import Placed
from vlrl.envs.gui.emu.widgets.controls import Choice, Slider
from vlrl.envs.gui.emu.widgets.entry import Entry, row_of
from vlrl.envs.gui.emu.widgets.rows import Rows
from vlrl.envs.gui.emu.windows import menus, wm
from vlrl.envs.gui.emu.windows.scene import Scene, on_screen

ARROWS = {"up": -1, "down": 1, "left": -1, "right": 1}
PAGE_ROWS = 8
EDITS = {"a": "select_all", "c": "copy", "x": "cut", "v": "paste", "z": "undo"}


def focused(scene: Scene, world: World) -> tuple[Layer, Placed] | None:
    """The widget that has the keys, and its window's layer."""
    front = wm.front(world)
    layer = scene.layer(world, front.number) if front else None
    if front is None or layer is None or not front.interface.focus:
        return None
    placed = layer.view.find(front.interface.focus)
    return None if placed is None else (layer, placed)


def on_widget(
    scene: Scene, world: World, layer: Layer, placed: Placed, modifiers: Sequence[str], name: str
) -> World | None:
    """One key for the widget that has the focus; None if it has no use for it."""
    widget, number = placed.widget, layer.number
    match widget:
        case Entry():
            return _in_entry(scene, world, layer, placed, widget, modifiers, name)
        case Rows() if widget.lines:
            return _in_rows(world, layer, widget, modifiers, name)
        case Slider() if name in ARROWS and not modifiers:
            step = ARROWS[name] * (1 if name in ("left", "right") else -1) * widget.step
            value = min(max(widget.least, widget.number + step), widget.most)
            return update.deliver(world, number, Change(widget.id, value))
        case Choice() if name in ("up", "down") and not modifiers:
            keys = [key for key, _ in widget.options]
            at = keys.index(widget.chosen) + ARROWS[name] if widget.chosen in keys else 0
            return update.deliver(world, number, Change(widget.id, keys[min(max(0, at), len(keys) - 1)]))
        case Choice() if name in ("enter", "space"):
            box = on_screen(layer, placed.box)
            return menus.open_menu(world, number, widget.id, "choice", widget.items, box)
        case _ if widget.press is not None and name in ("enter", "space") and not modifiers:
            return update.deliver(world, number, widget.press)
    return None


def _in_rows(world: World, layer: Layer, rows: Rows, modifiers: Sequence[str], name: str) -> World | None:
    number, keys = layer.number, [line.key for line in rows.lines]
    marked = [index for index, key in enumerate(keys) if key in rows.selected]
    if name == "enter" and marked:
        return update.deliver(world, number, Activate(rows.id, keys[marked[0]]))
    if name == "a" and "ctrl" in modifiers and rows.many:
        return update.deliver(world, number, Change(rows.id, tuple(keys)))
    steps = {
        "up": -1,
        "down": 1,
        "page_up": -PAGE_ROWS,
        "page_down": PAGE_ROWS,
        "home": -len(keys),
        "end": len(keys),
    }
    if name not in steps or "ctrl" in modifiers or "alt" in modifiers:
        return None
    at = (marked[-1] if name in ("down", "page_down", "end") else marked[0]) + steps[name] if marked else 0
    at = min(max(0, at), len(keys) - 1)
    chosen = (*rows.selected, keys[at]) if rows.many and "shift" in modifiers else (keys[at],)
    world = update.deliver(
        world, number, Change(rows.id, tuple(dict.fromkeys(chosen)) if rows.many else keys[at])
    )
    high, scroller = rows.row_height(layer.view.look), layer.view.scrollers[rows.id]
    visible = scroller.box[3] - scroller.box[1]
    offset = min(max(scroller.offset, (at + 1) * high - visible), at * high)
    return editing.scroll_to(world, number, layer.view, rows.id, offset)


def _in_entry(
    scene: Scene,
    world: World,
    layer: Layer,
    placed: Placed,
    entry: Entry,
    modifiers: Sequence[str],
    name: str,
) -> World | None:
    number, view, cursor = layer.number, layer.view, entry.cursor(layer.view)
    ctrl, shift = "ctrl" in modifiers, "shift" in modifiers
    if "alt" in modifiers or "super" in modifiers:
        return None
    if ctrl and name in EDITS:
        world = editing.edit(world, number, entry, view, EDITS[name])
        return menus.caret_shown(scene, world, number)
    if name in ("backspace", "delete"):
        changed = text.erase(entry.text, cursor, forward=name == "delete", word=ctrl)
        world = editing.change_text(world, number, entry, *changed, view)
        return menus.caret_shown(scene, world, number)
    if name == "enter" and not ctrl:
        if entry.lines > 1:
            return insert(scene, world, layer, entry, "\n")
        return update.deliver(world, number, Activate(entry.id, entry.text)) if entry.press is None else None
    if name == "space" or (len(name) == 1 and not ctrl):
        return insert(scene, world, layer, entry, " " if name == "space" else name)
    moved = _moved(entry, placed, layer, name, ctrl, shift)
    if moved is None:
        return None
    return menus.caret_shown(scene, editing.set_cursor(world, number, entry.id, moved), number)


def _moved(
    entry: Entry, placed: Placed, layer: Layer, name: str, ctrl: bool, shift: bool
) -> TextCursor | None:
    """The cursor after a key that moves it; None for a key that does not."""
    view, cursor = layer.view, entry.cursor(layer.view)
    if name in ("left", "right"):
        return text.step(entry.text, cursor, forward=name == "right", word=ctrl, extend=shift)
    spans = entry.spans(placed.box, view)
    row = row_of(spans, cursor.caret)
    if name in ("home", "end"):
        at = (0 if name == "home" else len(entry.text)) if ctrl else spans[row][name == "end"]
        return text.moved(cursor, at, shift)
    steps = {"up": -1, "down": 1, "page_up": -PAGE_ROWS, "page_down": PAGE_ROWS}
    if name not in steps or len(spans) == 1:
        return None
    x, y = entry.place_of(cursor.caret, placed.box, view)
    at = entry.offset_at(x, y + steps[name] * view.look.line, placed.box, view)
    return text.moved(cursor, at, shift)


def insert(scene: Scene, world: World, layer: Layer, entry: Entry, new: str) -> World:
    """Put a text where the caret is, in the place of what is selected."""
    number = layer.number
    changed = text.insert(entry.text, entry.cursor(layer.view), new)
    world = editing.change_text(world, number, entry, *changed, layer.view)
    return menus.caret_shown(scene, world, number) if entry.lines > 1 else world
