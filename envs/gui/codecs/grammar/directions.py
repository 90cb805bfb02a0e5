"""Scrolls of which only the direction is said: by half of the screen, and by no more than five notches.

Half of a large screen is more than many windows show: without a limit a list between two such scrolls is
never seen. Five notches are what UI-TARS' own package turns the wheel by.
"""

from __future__ import annotations

from collections.abc import Mapping

from vlrl.envs.gui.actions import NOTCH_PX, Pixel, Scroll
from vlrl.envs.gui.codecs.codec import View

DIRECTIONS: Mapping[str, tuple[int, int]] = {"down": (0, 1), "up": (0, -1), "right": (1, 0), "left": (-1, 0)}
"""Where the view goes → the signs of dx and dy."""
WHEEL_PX = 5 * NOTCH_PX
"""The most that a wheel turns for a direction."""


def scroll_towards(
    direction: tuple[int, int], view: View, point: Pixel | None, most_px: int = WHEEL_PX
) -> Scroll:
    """A scroll by half of the screen, at most `most_px`, and within the page of what scrolls."""
    across, down = (min(side // 2, most_px) for side in view.screen)
    return Scroll(direction[0] * across, direction[1] * down, point, within_page=True)


def direction_of(scroll: Scroll) -> str | None:
    """A scroll's direction; None if it goes both ways, or nowhere."""
    sign = (scroll.dx > 0) - (scroll.dx < 0), (scroll.dy > 0) - (scroll.dy < 0)
    return next((word for word, way in DIRECTIONS.items() if way == sign), None)
