"""Which widget a place belongs to."""

from __future__ import annotations

from collections.abc import Sequence

from vlrl.envs.gui.actions import Pixel
from vlrl.envs.gui.screen import Element

UNREACHABLE = frozenset({"hidden", "covered"})


def element_at(elements: Sequence[Element], point: Pixel) -> Element | None:
    """The widget that a click on a pixel meets: of those it lies in, the one drawn last; None outside all.

    Args:
        elements: in the order of drawing, as a backend's `elements` gives them.
        point: a pixel of the screen.
    """
    x, y = point
    for element in reversed(elements):
        x0, y0, x1, y1 = element.box
        if x0 <= x < x1 and y0 <= y < y1 and not element.states & UNREACHABLE:
            return element
    return None
