"""How much of a MiniWoB++ page's own reward counts as success.

Most pages pay 1 or −1. Others pay by degrees, and pay something to whoever submits at once: a colour not
far off, half of the boxes as they should be. So success is a page's full marks; where these would take a hit
to the pixel it is what a careful hand reaches. What agents that do not look earn is in docs/gui_web.md
(`benchmarks/miniwob_nulls.py`).
"""

from __future__ import annotations

from collections.abc import Mapping

FULL_MARKS = 1.0
MARKS: Mapping[str, float] = {
    "bisect-angle": 0.9,  # of half the angle
    "circle-center": 0.8,  # of the radius
    "draw-circle": 0.9,  # a deviation below 4 pixels
    "draw-line": 0.9,
    "find-midpoint": 0.8,  # 6 pixels away
    "right-angle": 0.95,  # 4.5° away
    "use-colorwheel": 0.95,  # 13 of 255 away, the mean of red, green and blue
    "use-colorwheel-2": 0.95,
}
"""Task → least raw reward of a success; all others need full marks."""

_ROUNDING = 1e-6


def is_solved(name: str, reward: float) -> bool:
    """Whether a task's raw reward is a success."""
    return reward >= MARKS.get(name, FULL_MARKS) - _ROUNDING
