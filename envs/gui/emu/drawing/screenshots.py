"""Screenshots in memory that is used again, so that a step copies only what has changed.

A screenshot that somebody still holds, or any view of it, is never written to: memory is taken again only
once nothing refers to it. It then shows an earlier screen, and only what has changed since is copied.
"""

from __future__ import annotations

from collections.abc import Sequence
from weakref import ref

import numpy as np

from vlrl.envs.gui.emu.drawing.paint import union
from vlrl.envs.gui.emu.state import Box
from vlrl.types import ByteArray

KEPT = 3
"""Pieces of memory that are remembered: of the screen of now, of the one before, and one that is held."""
MANY = 40
"""Boxes that are listed before those that cover the same are looked for."""


class _Lease:
    """What a given screenshot, and every view of it, refers to: once it is gone, nobody sees the memory."""

    def __init__(self, pixels: ByteArray) -> None:
        self._pixels, self.__array_interface__ = pixels, pixels.__array_interface__


class _Memory:
    """Room for a screenshot.

    Attributes:
        pixels: [height, width, 3] of it, to write to.
        stale: where it does not show the screen.
    """

    def __init__(self, size: tuple[int, int]) -> None:
        width, height = size
        self.pixels: ByteArray = np.empty((height, width, 3), np.uint8)
        self.stale: list[Box] = [(0, 0, width, height)]
        self._lease: ref[_Lease] | None = None

    @property
    def is_free(self) -> bool:
        """Whether nobody has what it was given as, nor a view of that."""
        return self._lease is None or self._lease() is None

    def given(self) -> ByteArray:
        """It as an array that cannot be written to."""
        lease = _Lease(self.pixels)
        self._lease = ref(lease)
        pixels = np.asarray(lease)
        pixels.flags.writeable = False
        return pixels


class Screenshots:
    """The screenshots of one desktop."""

    def __init__(self, size: tuple[int, int]) -> None:
        """Take screenshots of a screen of `size`, (width, height) in pixels."""
        self.size = size
        self._known: list[_Memory] = []

    def forget(self) -> None:
        """Another screen is shown from now on, of which nothing is known."""
        self.changed([(0, 0, *self.size)])

    def changed(self, boxes: Sequence[Box]) -> None:
        """Say where the screen has changed since this was called last."""
        for memory in self._known:
            memory.stale += boxes
            if len(memory.stale) > MANY:
                memory.stale = union(memory.stale)

    def take(self, screen: ByteArray) -> _Memory:
        """Room that shows the screen, to be painted on (say in `stale` where) and given."""
        memory = next((one for one in self._known if one.is_free), None)
        if memory is None:
            memory = _Memory(self.size)
            self._known = [*self._known[1 - KEPT :], memory]
        width, height = self.size
        source, target = (pixels.reshape(height, 3 * width) for pixels in (screen, memory.pixels))
        for x0, y0, x1, y1 in union(memory.stale):
            target[y0:y1, 3 * x0 : 3 * x1] = source[y0:y1, 3 * x0 : 3 * x1]
        memory.stale = []
        return memory
