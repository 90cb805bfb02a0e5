"""What all generated visual environments share: levels of difficulty, the size, and the draws from a seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from vlrl.errors import ConfigError
from vlrl.seeds import derive_seed

MIN_SIZE, MAX_SIZE = 96, 4096


class GeneratedEnv:
    """Base of environments whose episodes are drawn from a seed; a subclass sets `name` and `num_levels`."""

    name: ClassVar[str]
    """As it is registered, such as "visual/counting"; part of what the seed's draws derive from."""
    num_levels: ClassVar[int] = 5
    """Levels are 1 (easiest) to this one."""

    def __init__(self, level: int | Sequence[int] = 1, image_size: int = 224) -> None:
        """Choose difficulty and size.

        Args:
            level: of difficulty, or [lowest, highest] to draw from evenly; a task's "level" goes before it.
            image_size: side of the square images in pixels.

        Raises:
            ConfigError: for a level or size out of range.
        """
        self.levels = self._level_range(level, "option level")
        if isinstance(image_size, bool) or not isinstance(image_size, int):
            raise ConfigError(f"env {self.name}: option image_size={image_size!r}; give a whole number")
        if not MIN_SIZE <= image_size <= MAX_SIZE:
            raise ConfigError(
                f"env {self.name}: option image_size={image_size} is not from {MIN_SIZE} to {MAX_SIZE} pixels"
            )
        self.image_size = image_size

    def begin(self, task: Mapping[str, Any], seed: int) -> tuple[np.random.Generator, int]:
        """(the generator of all that an episode draws, its level).

        Raises:
            ConfigError: for a level out of range, or a key of the task that is not "level".
        """
        if unknown := sorted(set(task) - {"level"}):
            raise ConfigError(f"env {self.name}: task key {unknown[0]!r} is unknown; the only one is 'level'")
        low, high = self._level_range(task["level"], "task key level") if "level" in task else self.levels
        drawn = np.random.default_rng(derive_seed(self.name, seed, "level")).integers(low, high + 1)
        return np.random.default_rng(derive_seed(self.name, seed, int(drawn))), int(drawn)

    def _level_range(self, level: Any, place: str) -> tuple[int, int]:
        ends = [level, level] if isinstance(level, int) else level
        is_pair = isinstance(ends, Sequence) and not isinstance(ends, str) and len(ends) == 2
        if not is_pair or any(isinstance(end, bool) or not isinstance(end, int) for end in ends):
            raise ConfigError(f"env {self.name}: {place}={level!r}; give a level, or [lowest, highest]")
        low, high = ends
        if not 1 <= low <= high <= self.num_levels:
            raise ConfigError(f"env {self.name}: {place}={level!r} is not within 1 to {self.num_levels}")
        return int(low), int(high)
