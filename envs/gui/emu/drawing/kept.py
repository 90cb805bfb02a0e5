"""What painters gave is kept: bounded by bytes, and what is wanted again stays."""

from __future__ import annotations

from typing import Any

from vlrl.envs.gui.emu.drawing.rasters import Painter
from vlrl.types import ByteArray

CACHED_BYTES = 96_000_000
"""Of pixels that painters gave, in two generations of half of it each."""
ENTRY_BYTES = 500
"""What a key and its place take, about: most fills and icons have fewer bytes of their own."""


class Generations:
    """A cache of what painters gave: once the young half is full it becomes the old one, which is let go."""

    def __init__(self, half_bytes: int) -> None:
        self.half_bytes = half_bytes
        self.young: dict[tuple[Any, ...], ByteArray] = {}
        self.old: dict[tuple[Any, ...], ByteArray] = {}
        self.young_bytes = 0

    def renewed(self, key: tuple[Any, ...]) -> ByteArray:
        """What is not among the young: an old one that is wanted again, or a new one."""
        painter, width, height, values = key
        found = self.old.get(key)
        if found is None:
            found = painter(width, height, *values)
        size = own_bytes(found) + ENTRY_BYTES
        if self.young_bytes + size > self.half_bytes:
            self.old, self.young, self.young_bytes = self.young, {}, 0
        self.young_bytes += size
        self.young[key] = found
        return found


def own_bytes(pixels: ByteArray) -> int:
    """Bytes that an array keeps in memory: of a view that repeats itself, those of what it repeats."""
    own: Any = pixels
    while getattr(own, "base", None) is not None:
        own = own.base
    size: int = getattr(own, "nbytes", pixels.nbytes)
    return size


_kept = Generations(CACHED_BYTES // 2)


def raster(painter: Painter, width: int, height: int, values: tuple[Any, ...]) -> ByteArray:
    """What the painter gives, perhaps from the cache; not to be written to."""
    key = (painter, width, height, values)
    found = _kept.young.get(key)
    return _kept.renewed(key) if found is None else found
