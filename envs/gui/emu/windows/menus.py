"""Open menus at work: opened, moved along, chosen from; and the commands of the desktop itself."""

from __future__ import annotations

from vlrl.envs.gui.emu import update
from vlrl.envs.gui.emu.app import APPS, app_for
from vlrl.envs.gui.emu.input import editing
from vlrl.envs.gui.emu.input.events import Change, Command
from vlrl.envs.gui.emu.state import Box, MenuItem, Popup, World, with_window
from vlrl.envs.gui.emu.strings import tr
from vlrl.envs.gui.emu.widgets.controls import Choice
from vlrl.envs.gui.emu.widgets.entry import Entry
from vlrl.envs.gui.emu.widgets.menus import SEPARATOR
from vlrl.envs.gui.emu.windows import notices, wm
from vlrl.envs.gui.emu.windows.popups import MenuLine
from vlrl.envs.gui.emu.windows.scene import Scene, widget_at
from vlrl.envs.gui.emu.windows.shade import OFF_IN_FLIGHT
from vlrl.envs.gui.emu.windows.shell import start_menu


def open_menu(
    world: World,
    number: int,
    source: str,
    kind: str,
    items: tuple[MenuItem, ...],
    box: Box,
    on: object = None,
) -> World:
    """Show a menu under (or at) a box of the screen."""
    return world._replace(popup=Popup(number, source, kind, items, box, on)) if items else world


def close(world: World) -> World:
    """Put the open menu away."""
    return world._replace(popup=None)


def edit_items() -> tuple[MenuItem, ...]:
    """The menu of a text field; apps put the same into their menu bar."""
    return (
        MenuItem("edit.undo", tr("Undo"), "ctrl+z"),
        SEPARATOR,
        MenuItem("edit.cut", tr("Cut"), "ctrl+x"),
        MenuItem("edit.copy", tr("Copy"), "ctrl+c"),
        MenuItem("edit.paste", tr("Paste"), "ctrl+v"),
        MenuItem("edit.select_all", tr("Select all"), "ctrl+a"),
    )


def line_at(scene: Scene, world: World, x: int, y: int) -> MenuLine | None:
    """The line of the open menu under a place."""
    layer = scene.at(world, x, y)
    placed = widget_at(layer, x, y) if layer is not None and layer.is_menu else None
    return placed.widget if placed is not None and isinstance(placed.widget, MenuLine) else None


def hover(scene: Scene, world: World) -> World:
    """Mark the line under the pointer; one with a submenu opens it."""
    line = line_at(scene, world, *world.pointer)
    if line is None or world.popup is None:
        return world
    trail = (*world.popup.trail[: line.owner.depth], line.index)
    if trail == world.popup.trail[: len(trail)]:
        return world
    return world._replace(popup=world.popup._replace(trail=trail))


def choose_at(scene: Scene, world: World, x: int, y: int) -> World:
    """The button was let go over the open menu, or over what opened it."""
    line = line_at(scene, world, x, y)
    if line is None or world.popup is None:
        return world
    trail = (*world.popup.trail[: line.owner.depth], line.index)
    return choose(scene, world._replace(popup=world.popup._replace(trail=trail)))


def choose(scene: Scene, world: World) -> World:
    """Do what the marked line says."""
    popup = world.popup
    if popup is None or not popup.trail:
        return world
    item = marked(popup)
    if not item.enabled or item.id == "-" or item.items:
        return world
    world = close(world)
    if popup.window == 0:
        return desktop_command(world, item.id, None)
    if popup.kind == "choice":
        return _chosen(scene, world, popup, int(item.id))
    return command(scene, world, popup.window, item.id, popup.on)


def marked(popup: Popup) -> MenuItem:
    """The line under the pointer or the keyboard's mark."""
    items, item = popup.items, popup.items[popup.trail[0]]
    for index in popup.trail:
        item = items[index]
        items = item.items
    return item


def command(scene: Scene, world: World, number: int, id: str, on: object = None) -> World:
    """A menu's command: the text field that has the focus takes what is for it, the app the rest."""
    layer = scene.layer(world, number)
    if layer is not None and id.startswith("edit."):
        placed = layer.view.find(editing.interface_of(world, number).focus)
        if placed is not None and isinstance(placed.widget, Entry):
            world = editing.edit(world, number, placed.widget, layer.view, id.removeprefix("edit."))
            return caret_shown(scene, world, number)
    return update.deliver(world, number, Command(id, on))


def caret_shown(scene: Scene, world: World, number: int) -> World:
    """Scroll the focused text area to its caret."""
    layer = scene.layer(world, number)
    focus = editing.interface_of(world, number).focus
    return world if layer is None else editing.show_caret(world, number, layer.view, focus)


def _chosen(scene: Scene, world: World, popup: Popup, index: int) -> World:
    layer = scene.layer(world, popup.window)
    placed = layer.view.find(popup.source) if layer else None
    if placed is None or not isinstance(placed.widget, Choice):
        return world
    key = placed.widget.options[index][0]
    return update.deliver(world, popup.window, Change(popup.source, key))


def desktop_command(world: World, id: str, box: Box | None) -> World:
    """What the task bar, the start menu and the icons of the desktop do."""
    kind, _, what = id.partition(":")
    match kind:
        case "start" if box is not None:
            return open_menu(world, 0, "start", "menu", start_menu(), box)
        case "app" if what in APPS:
            return update.launch(world, what)
        case "file":
            app = app_for(what) or "files"
            return update.launch(world, app, what) if app in APPS else world
        case "task":
            front = wm.front(world)
            if front is not None and wm.top_of(world, front.number) == int(what):
                return wm.minimize(world, int(what))
            return wm.to_front(world, int(what))
        case "clock":
            return world if world.is_mobile else world._replace(shade=None if world.is_shade_open else 0)
        case "notice":
            return _open_notice(world, int(what))
        case "dismiss":
            return notices.without(world, {int(what)})
        case "clear":
            return notices.without(world, {notice.number for notice in notices.here(world)})
        case "tile":
            return _turn(world, what)
        case "system.back":
            return back(world)
        case "system.home":
            return home(world)
        case _:
            return world


def _open_notice(world: World, number: int) -> World:
    """Open what a notice is about; it is then dismissed."""
    notice = next((one for one in notices.kept(world) if one.number == number), None)
    if notice is None:
        return world
    world = notices.without(world, {number})._replace(shade=None)
    world = update.launch(world, notice.app)
    if notice.opens:  # the app is open by now: this shows it what the notice is about
        world = update.launch(world, notice.app, notice.opens)
    return world


def _turn(world: World, key: str) -> World:
    """Turn a quick setting on or off, with what goes with it."""
    changed = {key: not world.settings[key]}
    if changed.get("airplane"):
        changed |= dict.fromkeys(OFF_IN_FLIGHT, False)
    return world._replace(settings={**world.settings, **changed})


def back(world: World) -> World:
    """A phone's back: the menu, the shade, the keyboard, the dialog, or the app goes away."""
    front = wm.front(world)
    if world.popup is not None:
        return close(world)
    if world.is_shade_open:
        return world._replace(shade=None)
    if world.keyboard is not None:
        return world._replace(keyboard=None)
    if front is None:
        return world
    if front.parent:
        return update.request_close(world, front.number)
    go_back = APPS[front.app].back
    state = go_back(front.state) if go_back is not None else None
    return (
        wm.minimize(world, front.number) if state is None else with_window(world, front._replace(state=state))
    )


def home(world: World) -> World:
    """A phone's home: every app is put away."""
    for window in world.windows:
        if not window.parent and not window.is_minimized:
            world = wm.minimize(world, window.number)
    return close(world)._replace(shade=None)
