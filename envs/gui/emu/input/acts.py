"""A typed action on a world: what it does, step by step, as a person's hand would."""

from __future__ import annotations

from collections.abc import Sequence

from vlrl.envs.gui.actions import (
    Action,
    Answer,
    ButtonDown,
    ButtonUp,
    Click,
    Drag,
    Finish,
    Key,
    KeyDown,
    KeyUp,
    LongPress,
    Move,
    OpenApp,
    Pixel,
    Scroll,
    Swipe,
    SystemButton,
    TypeText,
    Wait,
)
from vlrl.envs.gui.emu import update
from vlrl.envs.gui.emu.app import APPS, Reader
from vlrl.envs.gui.emu.input import keyboard, pointer, release, screen_keys, shade_touch
from vlrl.envs.gui.emu.state import World, with_window
from vlrl.envs.gui.emu.strings import tr
from vlrl.envs.gui.emu.windows import menus
from vlrl.envs.gui.emu.windows.scene import Scene

ACTION_MS = 1000
"""Virtual time that any action takes; a Wait takes its own."""
MAX_WAIT_MS = 3_600_000


def act(scene: Scene, world: World, action: Action) -> World:
    """The world after an action."""
    if world.said is not None:
        return world
    before, world = world, _act(scene, world, action)
    if world.settings.get("keyboard") == "screen" and world.is_mobile:
        world = screen_keys.shown(scene, before, world, action)
    passed = min(max(0, action.duration_ms), MAX_WAIT_MS) if isinstance(action, Wait) else ACTION_MS
    world = world._replace(time_ms=world.time_ms + passed)
    return world if world.settings.get("pages") != "dense" else _ticked(scene, world)


def _ticked(scene: Scene, world: World) -> World:
    """The world after what apps do by themselves as the clock goes on."""
    for window in world.windows:
        app = APPS[window.app]
        if app.tick is not None:
            layer = scene.layer(world, window.number)
            state = app.tick(window.state, Reader(world, app.name), layer.view if layer else None)
            if state is not window.state:
                world = with_window(world, window._replace(state=state))
    return world


def _act(scene: Scene, world: World, action: Action) -> World:
    match action:
        case Move(point):
            return pointer.move(scene, world, inside(world, point))
        case Click():
            return _click(scene, world, action)
        case ButtonDown(button, point):
            world = _at(scene, world, point)
            return pointer.press(scene, world) if button == "left" and world.held is None else world
        case ButtonUp(button, point):
            world = _at(scene, world, point)
            if button == "left":
                return release.release(scene, world)
            return pointer.context(scene, world) if button == "right" else world
        case Drag(path, button, modifiers):
            if button != "left":
                return world
            is_finger = world.is_mobile and world.held is None and not modifiers
            return _finger(scene, world, path) if is_finger else _drag(scene, world, path, modifiers)
        case Scroll(_, dy, point, within_page):
            return pointer.wheel(scene, _at(scene, world, point), dy, within_page)
        case TypeText(text):
            return keyboard.type_text(scene, world, text)
        case Key(keys):
            return keyboard.press_keys(scene, world, keys)
        case KeyDown(key):
            return _key_down(scene, world, key)
        case KeyUp(key):
            return world._replace(keys=tuple(held for held in world.keys if held != key))
        case LongPress(point):
            return pointer.context(scene, _at(scene, world, point))
        case Swipe(start, end):
            return _finger(scene, world._replace(held=None), (start, end))
        case SystemButton(name):
            return _system_button(scene, world, name)
        case OpenApp(name):
            return _open_app(world, name)
        case Answer() | Finish():
            return world._replace(said=action)
        case _:
            return world


def inside(world: World, point: Pixel) -> Pixel:
    """The pixel of the screen that is nearest to a place."""
    return min(max(0, point[0]), world.size[0] - 1), min(max(0, point[1]), world.size[1] - 1)


def _at(scene: Scene, world: World, point: Pixel | None) -> World:
    return world if point is None else pointer.move(scene, world, inside(world, point))


def _click(scene: Scene, world: World, action: Click) -> World:
    world = _at(scene, world, action.point)
    if action.button == "right":
        return pointer.context(scene, world)
    if action.button == "middle" or world.held is not None:
        return world
    modifiers = (*action.modifiers, *world.keys)
    for count in range(1, action.count + 1):
        world = release.release(scene, pointer.press(scene, world, count, modifiers))
    return world


def _drag(scene: Scene, world: World, path: Sequence[Pixel], modifiers: Sequence[str]) -> World:
    world = _at(scene, world, path[0])
    if world.held is None:
        world = pointer.press(scene, world, 1, (*modifiers, *world.keys))
    for point in path[1:]:
        world = pointer.move(scene, world, inside(world, point))
    return release.release(scene, world)


def _finger(scene: Scene, world: World, path: Sequence[Pixel]) -> World:
    """What scrolls follows the finger; what does not is dragged."""
    path = [inside(world, point) for point in path]
    pulled = shade_touch.pulled(scene, world, path[0], path[-1])
    if pulled is not None:
        return pulled
    world = pointer.move(scene, world, path[0])
    if pointer.scroller_under(scene, world) is not None:
        return pointer.wheel(scene, world, path[0][1] - path[-1][1])
    return _drag(scene, world, path, ())


def _key_down(scene: Scene, world: World, key: str) -> World:
    if key in world.keys:
        return world
    if key in keyboard.MODIFIERS:
        return world._replace(keys=(*world.keys, key))
    return keyboard.press_keys(scene, world, (key,))


def _system_button(scene: Scene, world: World, name: str) -> World:
    match name:
        case "back":
            return menus.back(world)
        case "home":
            return menus.home(world)
        case "enter":
            return keyboard.press_keys(scene, world, ("enter",))
        case _:
            return world


def _open_app(world: World, name: str) -> World:
    """Open an app by its name in code or on the screen; nothing happens if there is no such app."""
    wanted = name.strip().lower()
    for app in APPS.values():
        if app.is_listed and wanted in (app.name, app.label.lower(), tr(app.label).lower()):
            return update.launch(world._replace(popup=None, shade=None), app.name)
    return world
