"""What painters gave is kept, as far as there is room: what was wanted last stays."""

from __future__ import annotations

from heapq import heappop, heappush, heapreplace
from itertools import count
from threading import Lock
from typing import Any

from vlrl.envs.gui.emu.drawing.rasters import Painter
from vlrl.types import ByteArray

CACHED_BYTES = 96_000_000
ENTRY_BYTES = 500
"""What a key and its place take, about: most fills and icons have fewer bytes of their own."""


class Kept:
    """A cache by bytes, asked for every widget that is painted: a look-up hashes once and locks nothing."""

    def __init__(self, most_bytes: int) -> None:
        self.most_bytes = most_bytes
        self.num_bytes = 0
        self._found: dict[tuple[Any, ...], _Entry] = {}
        self._clock = count()
        self._queue: list[tuple[int, tuple[Any, ...]]] = []
        self._lock = Lock()

    def get(self, key: tuple[Any, ...]) -> ByteArray | None:
        """What is kept under a key, for which it is then the last that goes."""
        entry = self._found.get(key)
        if entry is None:
            return None
        entry.wanted = next(self._clock)
        return entry.pixels

    def put(self, key: tuple[Any, ...], pixels: ByteArray) -> None:
        """Keep something, and let go of what nobody has wanted for longest."""
        with self._lock:
            if key not in self._found:
                entry = self._found[key] = _Entry(pixels, next(self._clock))
                heappush(self._queue, (entry.wanted, key))
                self.num_bytes += own_bytes(pixels) + ENTRY_BYTES
            while self.num_bytes > self.most_bytes:
                since, oldest = self._queue[0]
                entry = self._found[oldest]
                if entry.wanted > since:  # it has been wanted since it was put in line
                    heapreplace(self._queue, (entry.wanted, oldest))
                    continue
                heappop(self._queue)
                del self._found[oldest]
                self.num_bytes -= own_bytes(entry.pixels) + ENTRY_BYTES


class _Entry:
    """What is kept, and when it was wanted last."""

    __slots__ = ("pixels", "wanted")

    def __init__(self, pixels: ByteArray, wanted: int) -> None:
        self.pixels, self.wanted = pixels, wanted


def own_bytes(pixels: ByteArray) -> int:
    """Bytes that an array keeps in memory: of a view that repeats itself, those of what it repeats."""
    own: Any = pixels
    while getattr(own, "base", None) is not None:
        own = own.base
    size: int = getattr(own, "nbytes", pixels.nbytes)
    return size


_kept = Kept(CACHED_BYTES)


def raster(painter: Painter, width: int, height: int, values: tuple[Any, ...]) -> ByteArray:
    """What the painter gives, perhaps from the cache; not to be written to."""
    key = (painter, width, height, values)
    found = _kept.get(key)
    if found is None:
        found = painter(width, height, *values)
        _kept.put(key, found)
    return found
