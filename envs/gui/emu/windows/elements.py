"""The accessibility tree of a desktop."""

from __future__ import annotations

from vlrl.envs.gui.emu.drawing.paint import Layer
from vlrl.envs.gui.emu.state import Box, World
from vlrl.envs.gui.emu.widgets.base import Placed
from vlrl.envs.gui.emu.windows.scene import Scene, on_screen
from vlrl.envs.gui.screen import Element


def elements_of(scene: Scene, world: World) -> list[Element]:
    """Every widget that has a role, in the order of drawing: windows first, then what is in them."""
    layers = scene.layers(world)
    found: list[Element] = []
    for height, layer in enumerate(layers):
        above = [other.box for other in layers[height + 1 :]]
        path: tuple[str, ...] = ()
        if isinstance(layer.key, int):
            window = world.window(layer.key)
            title = layer.view.placed[0].widget.name
            role = "dialog" if window is not None and window.parent else "window"
            states = frozenset({"focused"} if layer.view.is_active else ())
            found.append(Element(role, title, layer.box, "", states))
            path = (title,)
        covers = [(n, on_screen(layer, p.seen)) for n, p in enumerate(layer.view.placed) if p.widget.covers]
        for index, placed in enumerate(layer.view.placed):
            if placed.widget.role:
                over = [box for place, box in covers if place > index] if covers else []
                found.append(_element(layer, placed, [*over, *above], path))
    return found


def _element(layer: Layer, placed: Placed, above: list[Box], path: tuple[str, ...]) -> Element:
    widget = placed.widget
    states = widget.states(layer.view)
    x0, y0, x1, y1 = on_screen(layer, placed.seen)
    if x0 >= x1 or y0 >= y1:
        states.add("hidden")
    else:
        x, y = (x0 + x1) // 2, (y0 + y1) // 2
        if any(a <= x < c and b <= y < d for a, b, c, d in above):
            states.add("covered")
    box = on_screen(layer, placed.box)
    if (x0, y0, x1, y1) != box or any(a < x1 and x0 < c and b < y1 and y0 < d for a, b, c, d in above):
        states.add("clipped")
    return Element(widget.role, widget.name, box, widget.value, frozenset(states), path)
