"""Screenshots of any actions in any app: as if all was painted at once, and never changed once given."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from vlrl.envs.gui.actions import Action, Click, Drag, Key, Move, OpenApp, Scroll, TypeText
from vlrl.envs.gui.emu.desktop import Desktop
from vlrl.envs.gui.emu.drawing.paint import Compositor
from vlrl.envs.gui.emu.drawing.pointer_shape import paste_pointer
from vlrl.envs.gui.emu.drawing.screenshots import Screenshots
from vlrl.envs.gui.emu.env import EmuEnv
from vlrl.envs.gui.emu.state import World
from vlrl.envs.gui.emu.task import TEMPLATES, judge
from vlrl.envs.gui.emu.windows.scene import Scene
from vlrl.envs.gui.emu.windows.shell import listed
from vlrl.types import ByteArray

CHORDS = (
    "ctrl+a",
    "ctrl+z",
    "tab",
    "down",
    "shift+right",
    "escape",
    "backspace",
    "enter",
    "super",
    "alt+tab",
)
WORDS = ("harbour ", "seven\n", "x")


def desktop_of(**options: object) -> Desktop:
    backend = EmuEnv(**options).backend  # type: ignore[arg-type]
    assert isinstance(backend, Desktop)
    return backend


def at_once(world: World) -> ByteArray:
    """The screen painted by what has shown nothing before."""
    pixels = Compositor(world.size).show(Scene().layers(world)).copy()
    if not world.is_mobile:
        paste_pointer(pixels, 2 if world.settings["scale"] >= 175 else 1, world.pointer)
    return pixels


def some_action(desktop: Desktop, rng: np.random.Generator) -> Action:
    """Mostly something on a widget that can be seen."""
    width, height = desktop.size
    seen = [e for e in desktop.elements() if e.role and not e.states & {"hidden", "covered"}]
    x0, y0, x1, y1 = seen[int(rng.integers(len(seen)))].box
    point = min(max(0, x0 + x1) // 2, width - 1), min(max(0, y0 + y1) // 2, height - 1)
    anywhere = int(rng.integers(width)), int(rng.integers(height))
    match str(rng.choice(["click"] * 6 + ["right", "type", "key", "wheel", "drag", "move"])):
        case "right":
            return Click(point, "right")
        case "type":
            return TypeText(str(rng.choice(WORDS)))
        case "key":
            return Key(tuple(str(rng.choice(CHORDS)).split("+")))
        case "wheel":
            return Scroll(0, int(rng.integers(-2, 3)) * 60, point)
        case "drag":
            return Drag((point, anywhere))
        case "move":
            return Move(anywhere)
        case _:
            return Click(point)


def played(desktop: Desktop, seed: int, actions: list[Action], count: int) -> Iterator[ByteArray]:
    rng = np.random.default_rng(seed)
    for number in range(count):
        action = actions[number] if number < len(actions) else some_action(desktop, rng)
        yield desktop.perform(action).pixels


@pytest.mark.parametrize("form", ["desktop", "mobile"])
@pytest.mark.parametrize("app", sorted({*listed("desktop"), *listed("mobile")}))
def test_whatever_is_done_the_screen_is_as_if_all_was_painted_at_once(app: str, form: str) -> None:
    """Every screenshot is let go, or some are kept by whoever looks at them."""
    desktop = desktop_of(form=form)
    for seed, keeps in ((5, False), (6, True)):
        desktop.reset({}, seed)
        held: list[tuple[ByteArray, bytes]] = []
        for pixels in played(desktop, seed, [OpenApp(app)], 14):
            assert np.array_equal(pixels, at_once(desktop.world))
            if keeps and len(held) < 5:
                held.append((pixels[3:], pixels[3:].tobytes()))
            del pixels
        assert all(view.tobytes() == content for view, content in held)


@pytest.mark.parametrize("name", sorted(TEMPLATES))
def test_a_verdict_that_is_kept_is_that_of_the_world_as_it_is(name: str) -> None:
    form = TEMPLATES[name].forms[0]
    desktop = desktop_of(tasks=name, form=form)
    desktop.reset({"name": name}, 1)
    initial = desktop.world
    for number, _ in enumerate(played(desktop, 1, [], 10)):
        assert desktop.verdict() == judge(desktop.setup, initial, desktop.world), number


def test_memory_is_taken_again_only_when_nothing_refers_to_it() -> None:
    screen, shots = np.arange(60, dtype=np.uint8).reshape(4, 5, 3), Screenshots((5, 4))
    first = shots.take(screen).given()
    view = first[1:3, 1:][::-1]
    kept, place = view.copy(), first.__array_interface__["data"]
    del first
    for number in range(8):
        screen = screen + np.uint8(1)
        shots.changed([(0, 0, 5, 4)])
        pixels = shots.take(screen).given()
        assert np.array_equal(pixels, screen) and pixels.__array_interface__["data"] != place, number
        assert np.array_equal(view, kept)
        with pytest.raises(ValueError, match="read-only"):
            pixels[0, 0] = 1
    places = set()
    del pixels
    for _ in range(8):
        places.add(shots.take(screen).given().__array_interface__["data"][0])
    assert len(places) == 1


def test_only_what_was_said_to_have_changed_is_copied() -> None:
    screen, shots = np.zeros((4, 5, 3), np.uint8), Screenshots((5, 4))
    shots.take(screen).given()
    screen[:] = 7
    shots.changed([(1, 1, 3, 2)])
    pixels = shots.take(screen).given()
    assert (pixels == 7).all(2).nonzero()[0].tolist() == [1, 1]
    shots.forget()
    del pixels
    assert (shots.take(screen).given() == 7).all()
