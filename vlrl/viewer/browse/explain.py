"""What the parts of a reward mean: from the run's config and the docstrings of the built-in rewards."""

from __future__ import annotations

from typing import Any

from vlrl.check.catalog.rewards import describe
from vlrl.errors import VlrlError
from vlrl.registry import BUILT_IN


def explain_parts(rewards: Any) -> list[dict[str, str]]:
    """Each reward of a config: its name, its weight and what it computes.

    A reward in a file is named and never loaded: looking at a run executes nothing of it.

    Args:
        rewards: the config's list; anything else explains nothing.
    """
    out = []
    for reward in rewards if isinstance(rewards, list) else []:
        if not isinstance(reward, dict) or "name" not in reward:
            continue
        name = str(reward["name"])
        out.append({"name": name, "weight": str(reward.get("weight", 1.0)), "words": _purpose(name)})
    return out


def _purpose(name: str) -> str:
    if name not in BUILT_IN["rewards"]:
        return f"A reward of your own: {name}"
    try:
        return str(describe(name)["purpose"])
    except (VlrlError, TypeError, ValueError):
        return ""
