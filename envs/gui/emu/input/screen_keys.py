"""The keyboard on a phone's screen at work: when it is shown, what its keys do."""

from __future__ import annotations

from collections.abc import Mapping

from vlrl.envs.gui.actions import Action, Click, LongPress
from vlrl.envs.gui.emu.input import keyboard
from vlrl.envs.gui.emu.input.widget_keys import focused
from vlrl.envs.gui.emu.state import Keyboard, World
from vlrl.envs.gui.emu.widgets.entry import Entry
from vlrl.envs.gui.emu.windows import wm
from vlrl.envs.gui.emu.windows.scene import Scene, on_screen
from vlrl.envs.gui.emu.windows.screen_keyboard import (
    ENTER,
    ERASE,
    KEYBOARD,
    MORE_KEY,
    OTHER,
    SHIFT,
    SPACE,
    keyboard_box,
)

PAGES: Mapping[tuple[str, str], str] = {
    (SHIFT, "lower"): "upper",
    (SHIFT, "upper"): "lower",
    (OTHER, "lower"): "symbols",
    (OTHER, "upper"): "symbols",
    (OTHER, "symbols"): "lower",
    (OTHER, "more"): "lower",
    (MORE_KEY, "symbols"): "more",
    (MORE_KEY, "more"): "symbols",
}
"""(key, page) → the page that the key leads to."""
NAMES: Mapping[str, str] = {ENTER: "enter", ERASE: "backspace", SPACE: "space"}
"""Keys by the names that a keyboard with real keys has for them."""


def shown(scene: Scene, before: World, world: World, action: Action) -> World:
    """The world after an action, with the keyboard while a text field has the keys, until back hides it.

    Args:
        scene: lays worlds out.
        before: the world before the action.
        world: after it.
        action: what was done.
    """
    if world.popup is not None:
        return world  # the field that a menu is about stays where it is
    found = focused(scene, world)
    if found is None or not isinstance(found[1].widget, Entry) or not found[1].widget.enabled:
        return world if world.keyboard is None else world._replace(keyboard=None)
    layer, placed = found
    keys = world.keyboard
    if keys is None:
        point = action.point if isinstance(action, Click | LongPress) else None
        x0, y0, x1, y1 = on_screen(layer, placed.seen)
        is_tapped = point is not None and x0 <= point[0] < x1 and y0 <= point[1] < y1
        if not is_tapped and _focus(before) == _focus(world):
            return world
        keys = Keyboard()
    entry, view = found[1].widget, layer.view
    low = placed.box[3]
    if entry.lines > 1:
        low = entry.place_of(entry.cursor(view).caret, placed.box, view)[1] + view.look.line
    top = keyboard_box(view.look, world.size)[1]
    low += layer.box[1] + (world.keyboard.pan if world.keyboard else 0)
    return world._replace(keyboard=keys._replace(pan=max(0, low + view.look.unit - top)))


def tapped(scene: Scene, world: World, id: str) -> World:
    """A key of the screen was tapped; the id is "key:" and what it writes or does."""
    keys, key = world.keyboard, id.partition(":")[2]
    if keys is None or id == KEYBOARD:
        return world
    page = PAGES.get((key, keys.page))
    if page is not None:
        return world._replace(keyboard=keys._replace(page=page))
    world = keyboard.key(scene, world, (), NAMES.get(key, key))
    if keys.page == "upper" and len(key) == 1 and world.keyboard is not None:
        world = world._replace(keyboard=world.keyboard._replace(page="lower"))
    return world


def _focus(world: World) -> tuple[int, str]:
    front = wm.front(world)
    return (0, "") if front is None else (front.number, front.interface.focus)
