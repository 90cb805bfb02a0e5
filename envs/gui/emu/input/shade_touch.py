"""A finger at a phone's notices: the shade is pulled down and pushed up, notices are swept aside."""

from __future__ import annotations

from vlrl.envs.gui.actions import Pixel
from vlrl.envs.gui.emu.state import World
from vlrl.envs.gui.emu.windows import notices, wm
from vlrl.envs.gui.emu.windows.scene import Scene, widget_at
from vlrl.envs.gui.emu.windows.shade import SHADE, TOAST, Card, fitting, scrolled

LEAST_PX = 24
"""How far a finger has to go."""


def pulled(scene: Scene, world: World, start: Pixel, end: Pixel) -> World | None:
    """The world after a swipe that is about notices; None after any other."""
    across, down = end[0] - start[0], end[1] - start[1]
    is_upright = abs(down) > abs(across)
    if max(abs(down), abs(across)) < LEAST_PX or world.popup is not None:
        return None
    is_shown = world.is_shade_open
    if is_upright and down > 0 and start[1] < wm.work_area(world)[1]:
        return world._replace(shade=world.shade or 0, pointer=end)
    layer = scene.at(world, *start)
    if layer is None or layer.key not in (SHADE, TOAST):
        return None
    placed = widget_at(layer, *start)
    card = placed.widget if placed is not None and isinstance(placed.widget, Card) else None
    world = world._replace(pointer=end)
    if is_shown and is_upright:
        is_long = len(notices.here(world)) > fitting(world, layer.view.look)
        if card is not None and is_long:
            return scrolled(world, layer.view.look, -down)
        return world if down > 0 else world._replace(shade=None)
    return None if card is None else notices.without(world, {card.notice.number})
