"""Scrolls of which only the direction is said: by half of the screen, so that nothing is skipped."""

from __future__ import annotations

from collections.abc import Mapping

from vlrl.envs.gui.actions import Pixel, Scroll
from vlrl.envs.gui.codecs.codec import View

DIRECTIONS: Mapping[str, tuple[int, int]] = {"down": (0, 1), "up": (0, -1), "right": (1, 0), "left": (-1, 0)}
"""Where the view goes → the signs of dx and dy."""


def scroll_towards(direction: tuple[int, int], view: View, point: Pixel | None) -> Scroll:
    """A scroll by half of the screen."""
    width, height = view.screen
    return Scroll(direction[0] * (width // 2), direction[1] * (height // 2), point)


def direction_of(scroll: Scroll) -> str | None:
    """A scroll's direction; None if it goes both ways, or nowhere."""
    sign = (scroll.dx > 0) - (scroll.dx < 0), (scroll.dy > 0) - (scroll.dy < 0)
    return next((word for word, way in DIRECTIONS.items() if way == sign), None)
