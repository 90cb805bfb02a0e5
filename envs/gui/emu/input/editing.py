"""What a window's widgets keep by themselves: the focus, the cursors of text fields, what is scrolled."""

from __future__ import annotations

from vlrl.envs.gui.emu import limits
from vlrl.envs.gui.emu.input import text as texts
from vlrl.envs.gui.emu.input.events import Change
from vlrl.envs.gui.emu.state import Interface, TextCursor, Undo, World, with_window
from vlrl.envs.gui.emu.update import deliver, refuse
from vlrl.envs.gui.emu.widgets.base import View
from vlrl.envs.gui.emu.widgets.entry import Entry, row_of

UNDO_STEPS = 50


def interface_of(world: World, number: int) -> Interface:
    """A window's; an empty one if the window is gone."""
    window = world.window(number)
    return Interface() if window is None else window.interface


def with_interface(world: World, number: int, interface: Interface) -> World:
    """The world with a window's interface replaced."""
    window = world.window(number)
    return world if window is None else with_window(world, window._replace(interface=interface))


def focus(world: World, number: int, id: str) -> World:
    """Give a widget the keys."""
    interface = interface_of(world, number)
    if interface.focus == id:
        return world
    return with_interface(world, number, interface._replace(focus=id))


def set_cursor(world: World, number: int, id: str, cursor: TextCursor) -> World:
    """Move a text field's cursor."""
    interface = interface_of(world, number)
    if interface.cursors.get(id) == cursor:
        return world
    return with_interface(world, number, interface._replace(cursors={**interface.cursors, id: cursor}))


def scroll_to(world: World, number: int, view: View, id: str, offset: int) -> World:
    """Scroll a part to an offset, as far as it goes."""
    interface, scroller = interface_of(world, number), view.scrollers[id]
    offset = min(max(0, offset), scroller.last)
    if offset == scroller.offset:
        return world
    return with_interface(world, number, interface._replace(scroll={**interface.scroll, id: offset}))


def scroll_by(world: World, number: int, view: View, id: str, pixels: int) -> World:
    """Scroll a part from where it is."""
    return scroll_to(world, number, view, id, view.scrollers[id].offset + pixels)


def change_text(world: World, number: int, entry: Entry, text: str, cursor: TextCursor, view: View) -> World:
    """A text field has a new text: remember the old one, move the cursor, tell the app; not if too long."""
    if text == entry.text:
        return set_cursor(world, number, entry.id, cursor)
    if len(text) > max(len(entry.text), limits.AREA_CHARS if entry.lines > 1 else limits.FIELD_CHARS):
        return refuse(world, number, limits.TOO_LONG)
    interface = interface_of(world, number)
    undo = Undo(entry.id, entry.text, entry.cursor(view), interface.undo)
    cursors = {**interface.cursors, entry.id: cursor}
    world = with_interface(world, number, interface._replace(undo=_shortened(undo), cursors=cursors))
    return deliver(world, number, Change(entry.id, text))


def undo(world: World, number: int, entry: Entry) -> World:
    """Take the last change of a text field back."""
    interface = interface_of(world, number)
    last = interface.undo
    if last is None or last.id != entry.id:
        return world
    cursors = {**interface.cursors, entry.id: last.cursor}
    world = with_interface(world, number, interface._replace(undo=last.before, cursors=cursors))
    return deliver(world, number, Change(entry.id, last.text))


def edit(world: World, number: int, entry: Entry, view: View, what: str) -> World:
    """Cut, copy, paste, undo or select all, by the last part of the command's id."""
    cursor = entry.cursor(view)
    chosen = texts.selected(entry.text, cursor)
    match what:
        case "copy" | "cut" if chosen and not entry.secret:
            world = world._replace(clipboard=chosen)
            if what == "cut":
                return change_text(world, number, entry, *texts.insert(entry.text, cursor, ""), view)
        case "paste" if world.clipboard:
            pasted = world.clipboard if entry.lines > 1 else world.clipboard.replace("\n", " ")
            return change_text(world, number, entry, *texts.insert(entry.text, cursor, pasted), view)
        case "undo":
            return undo(world, number, entry)
        case "select_all":
            return set_cursor(world, number, entry.id, TextCursor(0, len(entry.text)))
    return world


def show_caret(world: World, number: int, view: View, id: str) -> World:
    """Scroll a text area so that its caret is seen; `view` has the text as it is now."""
    placed = view.find(id)
    if placed is None or not isinstance(placed.widget, Entry) or id not in view.scrollers:
        return world
    entry, box, scroller, line = placed.widget, placed.box, view.scrollers[id], view.look.line
    row = row_of(entry.spans(box, view), entry.cursor(view).caret)
    top, high = row * line, scroller.box[3] - scroller.box[1]
    if top < scroller.offset:
        return scroll_to(world, number, view, id, top)
    if top + line + view.look.unit > scroller.offset + high:
        return scroll_to(world, number, view, id, top + line + view.look.unit - high)
    return world


def _shortened(undo: Undo) -> Undo:
    """Undo steps without those too old or more than a window may keep, shortened now and then."""
    count, chars, kept = 0, 0, 0
    step: Undo | None = undo
    while step is not None and count < 2 * UNDO_STEPS and chars <= limits.UNDO_CHARS:
        count, chars = count + 1, chars + len(step.text)
        kept += chars <= limits.UNDO_CHARS
        step = step.before
    if step is None and kept == count:
        return undo
    steps, step = [], undo
    for _ in range(max(1, min(kept, UNDO_STEPS))):
        assert step is not None
        steps.append(step)
        step = step.before
    chain: Undo | None = None
    for one in reversed(steps):
        chain = one._replace(before=chain)
    assert chain is not None
    return chain
