"""Depth order: which of several things is nearer, by every pair."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import combinations
from typing import Any

from vlrl.errors import ConfigError
from vlrl.parsing.extract import Part, scored_text
from vlrl.parsing.strict_json import Unreadable, strict_json
from vlrl.rewards.visual.video import read_items
from vlrl.scoring.author import reward


@reward(range=(0.0, 1.0))
def depth_order(
    completion: str, answer: Any, *, tolerance: float = 0.02, part: Part = "answer", **context: Any
) -> float:
    """max(0, (C − D) / (C + D)) of an order from near to far: pairs in the right and in the wrong order.

    Only pairs whose depths differ by more than `tolerance`, as a ratio, are counted: what is equally far may
    stand either way. Range [0, 1]; a random order scores 0 in the mean before it is cut at 0. Source: ordinal
    depth with its ratio for equality (Chen et al. 2016, arXiv 1604.03901, section 5: WKDR counts the pairs
    that are wrong); the coefficient is Goodman and Kruskal's gamma.

    Written is a list of all names, each once, nearest first: "a, b, c", "a > b", or a JSON list. What
    else is written scores 0: a name too few, too many or twice.

    Args:
        completion: what the model wrote.
        answer: a mapping of names to depths above 0 (or its JSON text).
        tolerance: two depths d ≤ e are equal if e / d ≤ 1 + tolerance.
        part: "answer" or "whole".
        context: not looked at.

    Raises:
        ValueError: for a sample without depths, or one whose depths are all equal.
        ConfigError: for a tolerance below 0.
    """
    if not (math.isfinite(tolerance) and tolerance >= 0):
        raise ConfigError(f"tolerance={tolerance} must be at least 0")
    depths = _depths(answer)
    pairs = [
        (a, b) if depths[a] < depths[b] else (b, a)
        for a, b in combinations(depths, 2)
        if max(depths[a], depths[b]) / min(depths[a], depths[b]) > 1 + tolerance
    ]
    if not pairs:
        raise ValueError("the sample's depths are all equal within the tolerance: there is no order")
    text = scored_text(completion, part)
    said = None if text is None else read_items(text)
    if said is None or sorted(said) != sorted(depths):
        return 0.0
    place = {name: number for number, name in enumerate(said)}
    right = sum(place[near] < place[far] for near, far in pairs)
    return max(0.0, (2 * right - len(pairs)) / len(pairs))


def _depths(answer: Any) -> dict[str, float]:
    """Name as it is compared → depth."""
    try:
        found = strict_json(answer) if isinstance(answer, str) else answer
    except Unreadable as error:
        raise ValueError(f"the sample's answer must map names to depths: {error}") from error
    if not isinstance(found, Mapping) or len(found) < 2:
        raise ValueError("the sample's answer must map two or more names to depths")
    depths: dict[str, float] = {}
    for name, depth in found.items():
        is_number = isinstance(depth, int | float) and not isinstance(depth, bool)
        if not is_number or not 0 < depth < math.inf:
            raise ValueError(f"the sample's depth of {name!r:.40} is not a number above 0")
        items = read_items(str(name))
        if items is None or len(items) != 1 or items[0] in depths:
            raise ValueError(f"the sample's name {name!r:.40} stands twice, or cannot stand in a list")
        depths[items[0]] = float(depth)
    return depths
