"""What painters gave is kept, as far as there is room: what was wanted last stays."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from typing import Any

from vlrl.envs.gui.emu.drawing.rasters import Painter
from vlrl.types import ByteArray

CACHED_BYTES = 96_000_000
ENTRY_BYTES = 500
"""What a key and its place take, about: most fills and icons have fewer bytes of their own."""


class Kept:
    """A cache by bytes; an OrderedDict, since every widget that is painted asks it."""

    def __init__(self, most_bytes: int) -> None:
        self.most_bytes = most_bytes
        self.num_bytes = 0
        self._found: OrderedDict[tuple[Any, ...], ByteArray] = OrderedDict()
        self._lock = Lock()

    def get(self, key: tuple[Any, ...]) -> ByteArray | None:
        """What is kept under a key, for which it is then the last that goes."""
        with self._lock:
            found = self._found.get(key)
            if found is not None:
                self._found.move_to_end(key)
            return found

    def put(self, key: tuple[Any, ...], pixels: ByteArray) -> None:
        """Keep something, and let go of what nobody has wanted for longest."""
        with self._lock:
            if key not in self._found:
                self._found[key] = pixels
                self.num_bytes += own_bytes(pixels) + ENTRY_BYTES
            while self.num_bytes > self.most_bytes:
                self.num_bytes -= own_bytes(self._found.popitem(last=False)[1]) + ENTRY_BYTES


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
