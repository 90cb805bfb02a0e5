"""How an oracle gets at a widget: where it can be seen, or what has to be done before it can."""

from __future__ import annotations

from vlrl.envs.gui.actions import Action, Click, Key, Pixel, Scroll, Swipe, SystemButton
from vlrl.envs.gui.emu.drawing.paint import Layer
from vlrl.envs.gui.emu.oracle import at_pages
from vlrl.envs.gui.emu.oracle.locator import Locator, Stuck, turn, visible
from vlrl.envs.gui.emu.widgets.base import Placed, cut
from vlrl.envs.gui.emu.widgets.menus import MenuBar
from vlrl.envs.gui.emu.widgets.rows import Rows
from vlrl.envs.gui.emu.windows import notices, wm
from vlrl.envs.gui.emu.windows.scene import BACKDROP, BAR, on_screen
from vlrl.envs.gui.emu.windows.shade import SHADE, TOAST, Card

__all__ = ["Locator", "Stuck", "close_menu", "is_selected", "reach", "reach_click"]


def reach(locator: Locator, id: str) -> Pixel | Action:
    """A pixel at which the widget is visible; or the action that has to come before."""
    found = locator.find(id)
    if locator.world.keyboard is not None and (found is None or visible(locator, *found) is None):
        return close_menu(locator)  # before all else, since one cannot scroll by the keyboard
    if found is None:
        return _bring(locator, id)
    layer, placed = found
    if locator.world.popup is not None and not layer.is_menu:
        return close_menu(locator)
    above = _out_of_the_way(locator, layer, placed)
    if above is not None:
        return above
    point = visible(locator, layer, placed)
    if point is not None:
        return point
    way_out = at_pages.way_out(layer, placed)
    if way_out:
        return reach_click(locator, way_out)
    scrolled = _scroll_to(locator, layer, placed)
    if scrolled is not None:
        return scrolled
    if layer.key == BACKDROP:
        return _uncover_backdrop(locator)
    if isinstance(layer.key, int):
        return _raise(locator, layer.key)
    raise Stuck(f"{id!r} cannot be seen")


def reach_click(locator: Locator, id: str) -> Action:
    """A click on a widget, or what has to come before it."""
    found = reach(locator, id)
    return Click(found) if isinstance(found, tuple) else found


def is_selected(locator: Locator, id: str) -> bool:
    """Whether a row is selected in a list of which several may be."""
    return any(
        isinstance(rows, Rows) and rows.many and id in [f"{rows.id}.{key}" for key in rows.selected]
        for layer in locator.scene.layers(locator.world)
        for rows in (placed.widget for placed in layer.view.placed)
    )


def close_menu(locator: Locator) -> Action:
    """Close an open menu."""
    return SystemButton("back") if locator.is_mobile else Key(("escape",))


def _out_of_the_way(locator: Locator, layer: Layer, placed: Placed) -> Action | None:
    """Put away what notices show over a widget: the shade, or a toast; menus lie above them."""
    if layer.is_menu or (locator.world.shade is None and notices.STORE not in locator.world.store):
        return None
    if locator.world.is_shade_open and layer.key != SHADE:
        return close_menu(locator)
    toast = locator.scene.layer(locator.world, TOAST)
    if toast is None or toast is layer:
        return None
    x0, y0, x1, y1 = cut(on_screen(layer, placed.seen), toast.box)
    if x0 >= x1 or y0 >= y1:
        return None
    left, top, right, bottom = toast.box
    if locator.is_mobile:
        middle = (top + bottom) // 2
        return Swipe(((left + right) // 2, middle), (right - 8, middle))
    button = next(one for one in toast.view.placed if one.widget.id.startswith("dismiss:"))
    box = on_screen(toast, button.box)
    return Click(((box[0] + box[2]) // 2, (box[1] + box[3]) // 2))


def _scroll_to(locator: Locator, layer: Layer, placed: Placed) -> Action | None:
    """Scroll what the widget is in, if that is why it is not seen."""
    top, bottom = placed.box[1], placed.box[3]
    for scroller in reversed(layer.view.scrollers.values()):
        x0, y0, x1, y1 = scroller.box
        inside = x0 <= placed.box[0] < x1
        if (
            inside
            and scroller.last
            and (top < y0 or bottom > y1)
            and not (bottom <= y0 and not scroller.offset)
        ):
            return turn(locator, layer, scroller, (top + bottom) // 2 - (y0 + y1) // 2)
    return None


def _bring(locator: Locator, id: str) -> Action:
    """A row that is not drawn because its list has to be scrolled; menus of a window that is not in front."""
    if id.startswith(("notice:", "dismiss:")) and locator.world.is_shade_open:
        return _turn_list(locator, int(id.partition(":")[2]))
    for layer in reversed(locator.scene.layers(locator.world)):
        for placed in layer.view.placed:
            rows = placed.widget
            if isinstance(rows, MenuBar) and any(menu.id == id for menu in rows.menus):
                return _raise(locator, layer.number)  # the screen has the menus of the window in front
            if isinstance(rows, Rows) and id.startswith(f"{rows.id}."):
                keys = [f"{rows.id}.{line.key}" for line in rows.lines]
                if id in keys:
                    scroller, high = layer.view.scrollers[rows.id], rows.row_height(layer.view.look)
                    middle = (scroller.box[3] - scroller.box[1]) // 2
                    wanted = keys.index(id) * high + high // 2 - middle
                    return turn(locator, layer, scroller, wanted - scroller.offset)
    awaited = at_pages.awaited(locator, id)
    if isinstance(awaited, str):
        return reach_click(locator, awaited)
    if awaited is not None:
        return awaited
    raise Stuck(f"there is no widget {id!r} on the screen")


def _turn_list(locator: Locator, number: int) -> Action:
    """Scroll the list of notices by one towards the one with a number."""
    numbers = [notice.number for notice in notices.here(locator.world)]
    if number not in numbers:
        raise Stuck(f"there is no notice {number}")
    layer = locator.scene.layer(locator.world, SHADE)
    assert layer is not None
    first, box = next((p.widget, p.box) for p in layer.view.placed if isinstance(p.widget, Card))
    assert isinstance(first, Card)
    x0, y0, x1, y1 = on_screen(layer, box)
    is_below = numbers.index(number) > numbers.index(first.notice.number)
    x, high = (x0 + x1) // 2, y1 - y0
    if not locator.is_mobile:
        return Scroll(0, high if is_below else -high, (x, (y0 + y1) // 2))
    return Swipe((x, y0 + high // 2), (x, y0 + high // 2 + (-high if is_below else high)))


def _raise(locator: Locator, number: int) -> Action:
    bar = locator.scene.layer(locator.world, BAR)
    placed = bar.view.find(f"task:{wm.top_of(locator.world, number)}") if bar else None
    point = visible(locator, bar, placed) if bar and placed else None
    if point is None:
        raise Stuck(f"window {number} is covered and has no button in the task bar")
    return Click(point)


def _uncover_backdrop(locator: Locator) -> Action:
    return SystemButton("home") if locator.is_mobile else Key(("super", "d"))
