"""What keys do: first an open menu, then the system, then the widget that has the focus, then the app."""

from __future__ import annotations

import re
from collections.abc import Sequence

from vlrl.envs.gui.emu import limits, update
from vlrl.envs.gui.emu.drawing.paint import Layer
from vlrl.envs.gui.emu.input import editing
from vlrl.envs.gui.emu.input.events import KeyPress
from vlrl.envs.gui.emu.input.widget_keys import focused, insert, on_widget
from vlrl.envs.gui.emu.state import World
from vlrl.envs.gui.emu.widgets.basic import Button
from vlrl.envs.gui.emu.widgets.entry import Entry
from vlrl.envs.gui.emu.widgets.menus import MenuBar
from vlrl.envs.gui.emu.windows import menus, wm
from vlrl.envs.gui.emu.windows.scene import BAR, Scene, on_screen

MODIFIERS = ("ctrl", "alt", "shift", "super")
_ENDS = re.compile(r"[\n\t]")
_NAMES = {"\n": "enter", "\t": "tab", " ": "space"}
SHIFTED = dict(zip("`1234567890-=[]\\;',./", '~!@#$%^&*()_+{}|:"<>?', strict=True))


def type_text(scene: Scene, world: World, written: str) -> World:
    """Type a text: whole lines into a text field, all of it into an area, key by key elsewhere.

    After `limits.KEYS` keys that were pressed one by one the rest is not typed: each may rebuild a window.
    """
    rest = "".join(one for one in written if one in "\n\t" or one.isprintable())
    pressed = 0
    while rest:
        front, taken = wm.front(world), _ENDS.split(rest, maxsplit=1)[0]
        found = None if world.popup is not None else focused(scene, world)
        if found is not None and isinstance(found[1].widget, Entry) and found[1].widget.enabled:
            layer, entry = found[0], found[1].widget
            taken = rest.partition("\t")[0] if entry.lines > 1 else taken
            world = insert(scene, world, layer, entry, taken) if taken else world
        elif world.popup is None and front is not None:
            taken = ""
        rest = rest[len(taken) :]
        after = wm.front(world)
        if after is not None and after is not front and after.reply == "refused":
            return world
        if not rest:
            break
        if taken and rest[0] not in "\n\t":
            continue
        if pressed == limits.KEYS:
            return world if after is None else update.refuse(world, after.number, limits.TOO_MANY_KEYS)
        world = key(scene, world, (), _NAMES.get(rest[0], rest[0]))
        rest, pressed = rest[1:], pressed + 1
    return world


def press_keys(scene: Scene, world: World, keys: Sequence[str]) -> World:
    """A chord: modifiers are held while the other keys are pressed one after the other."""
    modifiers = [name for name in MODIFIERS if name in keys or name in world.keys]
    others = [name for name in keys if name not in MODIFIERS]
    if not others and tuple(keys) == ("super",):
        return key(scene, world, (), "super")
    for name in others:
        world = key(scene, world, modifiers, name)
    return world


def key(scene: Scene, world: World, modifiers: Sequence[str], name: str) -> World:
    """One key with the modifiers that are held."""
    if world.popup is not None:
        return _in_menu(scene, world, name)
    is_letter = len(name) == 1 and name.isalpha() and not {"ctrl", "alt", "super"} & set(modifiers)
    if "shift" in modifiers and (name in SHIFTED or is_letter):
        name, modifiers = SHIFTED.get(name, name.upper()), [m for m in modifiers if m != "shift"]
    chord = "+".join((*(m for m in MODIFIERS if m in modifiers), name.lower() if modifiers else name))
    done = _of_system(scene, world, chord)
    front = wm.front(world)
    if done is not None or front is None:
        return world if done is None else done
    found = focused(scene, world)
    if found is not None and found[1].widget.enabled:
        done = on_widget(scene, world, *found, modifiers, name)
        if done is not None:
            return done
    layer = scene.layer(world, front.number)
    assert layer is not None
    return _in_window(scene, world, layer, chord)


def _of_system(scene: Scene, world: World, chord: str) -> World | None:
    front = wm.front(world)
    match chord:
        case "escape" if world.is_shade_open:
            return world._replace(shade=None)
        case "super+n":
            return world._replace(shade=None if world.is_shade_open else 0)
        case "super" | "ctrl+escape":
            layer = scene.layer(world, BAR)
            placed = layer.view.find("start") if layer else None
            if layer is None or placed is None:
                return menus.home(world)
            return menus.desktop_command(world, "start", on_screen(layer, placed.box))
        case "alt+f4":
            return world if front is None else update.request_close(world, front.number)
        case "alt+tab":
            roots = [window.number for window in world.windows if not window.parent]
            return wm.to_front(world, roots[-2] if len(roots) > 1 else roots[-1]) if roots else world
        case "super+d":
            return menus.home(world)
        case "super+up" if front is not None and not front.is_maximized and not front.parent:
            return wm.command(world, front.number, "maximize")
        case "super+down" if front is not None and front.is_maximized:
            return wm.command(world, front.number, "maximize")
    return None


def _in_menu(scene: Scene, world: World, name: str) -> World:
    popup = world.popup
    assert popup is not None
    items, depth = popup.items, max(0, len(popup.trail) - 1)
    for index in popup.trail[:depth]:
        items = items[index].items
    at = popup.trail[depth] if popup.trail else -1
    match name:
        case "escape":
            return menus.close(world)
        case "enter" | "space":
            return menus.choose(scene, world)
        case "up" | "down":
            step = 1 if name == "down" else -1
            at = at if at >= 0 else (-1 if step > 0 else len(items))
            for _ in items:
                at = (at + step) % len(items)
                if items[at].id != "-" and items[at].enabled:
                    break
            return world._replace(popup=popup._replace(trail=(*popup.trail[:depth], at)))
        case "right" if at >= 0 and items[at].items:
            return world._replace(popup=popup._replace(trail=(*popup.trail, 0)))
        case "left" if depth:
            return world._replace(popup=popup._replace(trail=popup.trail[:depth]))
    return world


def _in_window(scene: Scene, world: World, layer: Layer, chord: str) -> World:
    number = layer.number
    for placed in layer.view.placed:
        if isinstance(placed.widget, MenuBar):
            for item in placed.widget.commands():
                if item.keys == chord and item.enabled:
                    return menus.command(scene, world, number, item.id)
    match chord:
        case "tab" | "shift+tab":
            return _next_focus(world, layer, -1 if chord == "shift+tab" else 1)
        case "enter":
            for placed in layer.view.placed:
                widget = placed.widget
                if (
                    isinstance(widget, Button)
                    and widget.kind == "primary"
                    and widget.enabled
                    and widget.press
                ):
                    return update.deliver(world, number, widget.press)
        case "escape":
            window = world.window(number)
            if window is not None and window.parent:
                return update.request_close(world, number)
    return update.deliver(world, number, KeyPress(chord))


def _next_focus(world: World, layer: Layer, step: int) -> World:
    ids = [
        p.widget.id for p in layer.view.placed if p.widget.takes_focus and p.widget.enabled and p.widget.id
    ]
    if not ids:
        return world
    now = layer.view.interface.focus
    at = (ids.index(now) + step) % len(ids) if now in ids else (0 if step > 0 else -1)
    return editing.focus(world, layer.number, ids[at])
