"""Notices drawn for tasks, and those that only distract."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from vlrl.envs.gui.emu.tasks.content.letters import DAYS, FIRST, LAST, TOPICS
from vlrl.envs.gui.emu.tasks.content.words import STEMS, TITLES
from vlrl.envs.gui.emu.windows.notices import Notice
from vlrl.seeds import derive_seed

SAYINGS: dict[str, Callable[[np.random.Generator], tuple[str, str]]] = {
    "mail": lambda rng: (_person(rng), _pick(rng, tuple(TOPICS))),
    "calendar": lambda rng: (_pick(rng, TITLES), f"In {5 * int(rng.integers(1, 7))} minutes"),
    "clock": lambda rng: ("Timer", f"{int(rng.integers(2, 50))} minutes are over."),
    "files": lambda rng: ("Download complete", f"{_pick(rng, STEMS)}.pdf"),
    "browser": lambda rng: ("News", f"The weather on {_pick(rng, DAYS)} was the best in years."),
    "contacts": lambda rng: (_person(rng), "has a birthday today."),
    "settings": lambda rng: ("Updates are ready", "Restart when it suits you."),
}
"""App → (title, text) of what it may say."""
SPREAD_MS = 25_000
"""Within which distracting toasts come, from the beginning."""


def _pick(rng: np.random.Generator, options: tuple[str, ...]) -> str:
    return options[int(rng.integers(len(options)))]


def _person(rng: np.random.Generator) -> str:
    return f"{_pick(rng, FIRST)} {_pick(rng, LAST)}".title()


def said_by(rng: np.random.Generator, app: str, number: int, time_ms: int) -> Notice:
    """A notice of an app."""
    return Notice(number, app, *SAYINGS[app](rng), time_ms)


def distracting(seed: int, now_ms: int) -> tuple[Notice, ...]:
    """Notices that have nothing to do with the task: one or two have come, three to five come later."""
    rng = np.random.default_rng(derive_seed("toasts", seed))
    old = [now_ms - 60_000 * int(rng.integers(3, 90)) for _ in range(int(rng.integers(1, 3)))]
    new = [now_ms + int(rng.integers(SPREAD_MS)) for _ in range(int(rng.integers(3, 6)))]
    apps = tuple(SAYINGS)
    return tuple(
        said_by(rng, _pick(rng, apps), number, time_ms)
        for number, time_ms in enumerate(sorted((*old, *new)), start=1)
    )
