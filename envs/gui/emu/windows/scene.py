"""The world laid out: the layers of the screen, each kept until what it shows changes."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from vlrl.envs.gui.emu.app import APPS, Reader
from vlrl.envs.gui.emu.drawing.look import Look, look_of
from vlrl.envs.gui.emu.drawing.paint import Layer
from vlrl.envs.gui.emu.state import Box, Held, Interface, Keyboard, Window, World
from vlrl.envs.gui.emu.strings import speak
from vlrl.envs.gui.emu.widgets.base import Placed, View, Widget
from vlrl.envs.gui.emu.widgets.menus import MenuBar, MenuTitle
from vlrl.envs.gui.emu.windows import notices, popups, screen_keyboard, shade, shell, wm
from vlrl.envs.gui.emu.windows.bars import BarLayer
from vlrl.envs.gui.emu.windows.frame import Frame

BACKDROP, BAR, STATUS = "backdrop", "bar", "status"  # BAR is that with the windows' buttons
NO_INTERFACE = Interface()


class Scene:
    """Makes layers of a world. What it keeps is a cache: the layers depend on the world alone."""

    def __init__(self) -> None:
        self._views: dict[Hashable, tuple[tuple[Any, ...], View]] = {}
        self._last: tuple[World, tuple[Layer, ...]] | None = None
        self._bars_kept: tuple[tuple[Any, ...], list[Layer]] | None = None
        self._shade_kept: tuple[tuple[Any, ...], Layer] | None = None

    def copy(self) -> Scene:
        """Another that keeps the same so far."""
        other = Scene()
        other._views, other._last = dict(self._views), self._last
        other._bars_kept, other._shade_kept = self._bars_kept, self._shade_kept
        return other

    def layers(self, world: World) -> tuple[Layer, ...]:
        """Layers from the back to the front: wallpaper, windows, task bar, open menus."""
        if self._last is not None:
            if self._last[0] is world:
                return self._last[1]
            if _look_alike(self._last[0], world):
                self._last = world, self._last[1]
                return self._last[1]
        look = look_of(world.settings)
        speak(look.language)
        layers = [Layer(BACKDROP, (0, 0, *world.size), self._backdrop(world, look))]
        front = wm.front(world)
        for window in world.windows:
            if not wm.is_hidden(world, window):
                box = wm.box_of(world, window)
                if world.keyboard is not None and window is front:
                    box = box[0], box[1] - world.keyboard.pan, box[2], box[3] - world.keyboard.pan
                view = self._window(world, window, box, window is front, look)
                layers.append(Layer(window.number, box, view, *_edges(world, window, look)))
        if world.keyboard is not None and world.shade is None:
            layers.append(self._keyboard(world.keyboard, world.size, look))
        layers += self._bars(world, look)
        if world.shade is not None or notices.STORE in world.store:
            layers += self._notices(world, look)
        if world.popup is not None:
            is_sheet = world.is_mobile and world.settings.get("choices") == "sheet"
            opened = popups.levels(world.popup, look, world.size, is_sheet)
            for depth, (box, menu) in enumerate(opened):
                edges = _menu_edges(look)
                layers.append(Layer(f"popup.{depth}", box, _laid_out(menu, box, look), *edges))
        numbers = {layer.key for layer in layers}
        for key in [key for key in self._views if key not in numbers]:
            del self._views[key]
        self._last = world, tuple(layers)
        return self._last[1]

    def layer(self, world: World, key: int | str) -> Layer | None:
        """The layer of a window, or of a part of the desktop."""
        for layer in self.layers(world):
            if layer.key == key:
                return layer
        return None

    def at(self, world: World, x: int, y: int) -> Layer | None:
        """The front layer under a place of the screen."""
        for layer in reversed(self.layers(world)):
            x0, y0, x1, y1 = layer.box
            if x0 <= x < x1 and y0 <= y < y1:
                return layer
        return None

    def _backdrop(self, world: World, look: Look) -> View:
        def make() -> View:
            return _laid_out(shell.Backdrop(world=world, id="backdrop"), (0, 0, *world.size), look)

        return self._kept(BACKDROP, (look, world.files), make)

    def _window(self, world: World, window: Window, box: Box, is_active: bool, look: Look) -> View:
        app = APPS[window.app]
        size = box[2] - box[0], box[3] - box[1]
        minute = world.time_ms // 60_000 if app.shows_time else 0
        band = _band_of(world)
        band = band if band is not None and band.window == window.number else None
        content = (window.state, world.files, world.settings, world.store, minute, window.is_maximized)
        laid_out = (size, look, band, window.interface.scroll, *content)
        shown = (is_active, window.interface, laid_out)
        known = self._views.get(window.number)

        def make() -> View:
            if known is not None and known[0][2] == laid_out:
                return known[1].seen_with(window.interface, is_active)
            content = app.build(window.state, Reader(world, app.name))
            frame = Frame(content, app.icon, bool(window.parent), window.is_maximized)
            frame.name, frame.id = app.title_of(window.state), "window.frame"
            return _laid_out(frame, (0, 0, *size), look, window.interface, is_active, band)

        return self._kept(window.number, shown, make)

    def _bars(self, world: World, look: Look) -> list[Layer]:
        if look.family.bars is not None and look.form == "desktop":
            return self._family_bars(world, look)
        clock, box = shell.clock_text(world), shell.bar_box(look, world.size)
        if look.form == "mobile":
            top = (0, 0, world.size[0], wm.work_area(world)[1])

            def make_status() -> View:
                return _laid_out(shell.StatusBar(world=world, id="status"), top, look)

            def make_buttons() -> View:
                return _laid_out(shell.NavigationBar(id="navigation"), box, look)

            status = self._kept(STATUS, (look, clock, notices.here(world)), make_status)
            return [Layer(STATUS, top, status), Layer(BAR, box, self._kept(BAR, (look,), make_buttons))]

        def make() -> View:
            return _laid_out(shell.Bar(world=world, id="taskbar"), box, look)

        return [Layer(BAR, box, self._kept(BAR, _shown_by_bars(world, look), make))]

    def _family_bars(self, world: World, look: Look) -> list[Layer]:
        assert look.family.bars is not None
        menus = self._menus(world, look)
        shown = (*_shown_by_bars(world, look), menus)
        if self._bars_kept is None or self._bars_kept[0] != shown:
            bars: list[BarLayer] = look.family.bars(world, look, menus)
            made = [Layer(bar.key, bar.box, _laid_out(bar.widget, bar.box, look), bar.radius) for bar in bars]
            self._bars_kept = shown, made
        return self._bars_kept[1]

    def _keyboard(self, shown: Keyboard, size: tuple[int, int], look: Look) -> Layer:
        """The keyboard of a phone."""
        box = screen_keyboard.keyboard_box(look, size)

        def make() -> View:
            return _laid_out(screen_keyboard.keyboard(shown.page, look.language), box, look)

        view = self._kept(screen_keyboard.KEYBOARD, (look, shown.page), make)
        return Layer(screen_keyboard.KEYBOARD, box, view)

    def _notices(self, world: World, look: Look) -> list[Layer]:
        """The shade, or else the toast of the newest notice."""
        if world.shade is not None:
            shown = look, world.settings, notices.here(world), world.shade
            if self._shade_kept is None or self._shade_kept[0] != shown:
                box, sheet = shade.shade(world, look)
                edges = (0, 0) if world.is_mobile else _menu_edges(look)
                self._shade_kept = shown, Layer(shade.SHADE, box, _laid_out(sheet, box, look), *edges)
            return [self._shade_kept[1]]
        notice = notices.toast(world)
        if notice is None:
            return []
        box = shade.toast_box(world, look)
        view = self._kept(shade.TOAST, (look, notice), lambda: _laid_out(shade.card(notice, look), box, look))
        return [Layer(shade.TOAST, box, view, *_menu_edges(look))]

    def _menus(self, world: World, look: Look) -> tuple[MenuTitle, ...]:
        """The menus of the window in front, where they are at the top of the screen."""
        front = wm.front(world)
        if front is None or look.menus != "top":
            return ()
        view = self._views[front.number][1]
        return next((one.widget.menus for one in view.placed if isinstance(one.widget, MenuBar)), ())

    def _kept(self, key: Hashable, shown: tuple[Any, ...], make: Any) -> View:
        """The view of before, if what it shows is the same."""
        known = self._views.get(key)
        if known is not None and known[0] == shown:
            return known[1]
        view: View = make()
        self._views[key] = shown, view
        return view


def _look_alike(one: World, other: World) -> bool:
    """Whether they differ at most in what no layer shows: pointer, keys, clipboard, seconds, most grips."""
    if one is other:
        return True
    is_same_time = one.time_ms == other.time_ms or (
        notices.STORE not in one.store and one.time_ms // 60_000 == other.time_ms // 60_000
    )
    return (
        is_same_time
        and one.windows is other.windows
        and one.popup is other.popup
        and one.settings is other.settings
        and one.store is other.store
        and one.files is other.files
        and one.size == other.size
        and one.shade == other.shade
        and one.keyboard == other.keyboard
        and _band_of(one) is _band_of(other)
    )


def _band_of(world: World) -> Held | None:
    """The rubber band that is being stretched."""
    return world.held if world.held is not None and world.held.grip == "band" else None


def _shown_by_bars(world: World, look: Look) -> tuple[Any, ...]:
    """What the bars show: the time, and the windows with their titles."""
    titles = tuple((w.number, APPS[w.app].title_of(w.state)) for w in world.windows if not w.parent)
    front = wm.front(world)
    top = wm.top_of(world, front.number) if front else 0
    return look, shell.clock_text(world), titles, top, notices.here(world)


def _laid_out(
    widget: Widget,
    box: Box,
    look: Look,
    interface: Interface = NO_INTERFACE,
    is_active: bool = True,
    band: Held | None = None,
) -> View:
    """A widget in a layer of its own."""
    view = View(look, interface, is_active, band)
    inside = (0, 0, box[2] - box[0], box[3] - box[1])
    place = look.family.places.get(type(widget))
    if place is None:
        widget.place(view, inside, inside)
    else:
        place(widget, view, inside, inside)
    return view


def _edges(world: World, window: Window, look: Look) -> tuple[int, int]:
    """(radius of the corners, reach of the shadow) of a window; none where it fills the screen."""
    family = look.family
    if not family.shadow or window.is_maximized or (world.is_mobile and not window.parent):
        return 0, 0
    return look.scaled(family.radius), look.scaled(family.shadow)


def _menu_edges(look: Look) -> tuple[int, int]:
    """The same of a menu."""
    family = look.family
    return (look.scaled(family.menu_radius), look.scaled(family.shadow // 2)) if family.shadow else (0, 0)


def on_screen(layer: Layer, box: Box) -> Box:
    """A box of a layer's, in pixels of the screen."""
    x, y, _, _ = layer.box
    return box[0] + x, box[1] + y, box[2] + x, box[3] + y


def widget_at(layer: Layer, x: int, y: int) -> Placed | None:
    """The front widget of a layer under a place of the screen."""
    return layer.view.at(x - layer.box[0], y - layer.box[1])
