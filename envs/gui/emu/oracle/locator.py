"""What an oracle sees of a desktop: widgets by their ids, and where they can be hit."""

from __future__ import annotations

from typing import NamedTuple

from vlrl.envs.gui.actions import Action, Pixel, Scroll, Swipe
from vlrl.envs.gui.emu.drawing.paint import Layer
from vlrl.envs.gui.emu.state import World
from vlrl.envs.gui.emu.widgets.base import Placed, Scroller
from vlrl.envs.gui.emu.windows.scene import Scene, widget_at


class Stuck(Exception):
    """The oracle cannot go on from here; the message says why."""


class Locator(NamedTuple):
    """Finds widgets on a desktop for an oracle."""

    scene: Scene
    world: World

    @property
    def is_mobile(self) -> bool:
        """Whether there is a finger in the place of a pointer."""
        return self.world.is_mobile

    def find(self, id: str) -> tuple[Layer, Placed] | None:
        """The widget with an id, in the front window that has it, an open menu first."""
        for layer in reversed(self.scene.layers(self.world)):
            placed = layer.view.find(id)
            if placed is not None:
                return layer, placed
        return None

    def offers(self, id: str) -> bool:
        """Whether an open menu has a line with this id."""
        layers = self.scene.layers(self.world)
        return any(layer.is_menu and layer.view.find(id) for layer in layers)


def visible(locator: Locator, layer: Layer, placed: Placed) -> Pixel | None:
    """A pixel at which a widget is in front of all others; None if there is none."""
    x0, y0, x1, y1 = placed.seen
    if x0 >= x1 or y0 >= y1:
        return None
    for part in (4, 2, 6, 1, 7, 3, 5):
        for across in (4, 2, 6, 1, 7, 3, 5):
            x = layer.box[0] + x0 + (x1 - x0) * across // 8
            y = layer.box[1] + y0 + (y1 - y0) * part // 8
            if 0 <= x < locator.world.size[0] and 0 <= y < locator.world.size[1]:
                top = locator.scene.at(locator.world, x, y)
                if top is not None and top.key == layer.key:
                    under = widget_at(top, x, y)
                    if under is not None and under.widget is placed.widget:
                        return x, y
    return None


def turn(locator: Locator, layer: Layer, scroller: Scroller, pixels: int) -> Action:
    """Scroll a part by some pixels."""
    x0, y0, x1, y1 = scroller.box
    x, y = layer.box[0] + (x0 + x1) // 2, layer.box[1] + (y0 + y1) // 2
    if not locator.is_mobile:
        return Scroll(0, pixels, (x, y))
    half = (y1 - y0) // 2 - 2
    step = min(max(-2 * half, pixels), 2 * half)
    return Swipe((x, y + step // 2), (x, y + step // 2 - step))
