"""Turn what is drawn into pixels, repainting only where something has changed.

A layer is a window, a menu, the task bar. Each has an image of its own, kept up to date by comparing the
items of now with those of before; the screen is the layers one over the other. All of this is a cache: the
pixels depend on the layers alone, never on what was shown before.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import NamedTuple

import numpy as np

from vlrl.envs.gui.emu.drawing.edges import paste_rounded, shade
from vlrl.envs.gui.emu.drawing.kept import raster
from vlrl.envs.gui.emu.drawing.rasters import blend
from vlrl.envs.gui.emu.state import Box
from vlrl.envs.gui.emu.widgets.base import Item, View, cut
from vlrl.types import ByteArray

MANY_BOXES = 12
"""From here on one box around all that changed costs less."""


class Layer(NamedTuple):
    """Something opaque on the screen.

    Attributes:
        key: unlike any other layer's; a window's number.
        box: where it is on the screen.
        view: what is in it, from its own top left corner.
        radius: of its corners, through which one sees what lies behind.
        shadow: pixels that its shadow reaches.
    """

    key: int | str
    box: Box
    view: View
    radius: int = 0
    shadow: int = 0

    @property
    def reach(self) -> Box:
        """Where it is with its shadow."""
        x0, y0, x1, y1 = self.box
        return x0 - self.shadow, y0 - self.shadow, x1 + self.shadow, y1 + self.shadow

    @property
    def core(self) -> Box:
        """The part between its round corners."""
        x0, y0, x1, y1 = self.box
        return x0, y0 + self.radius, x1, y1 - self.radius

    def hides(self, box: Box) -> bool:
        """Whether nothing behind it is seen in a box."""
        x0, y0, x1, y1 = self.box
        if x0 > box[0] or y0 > box[1] or x1 < box[2] or y1 < box[3]:
            return False
        r = self.radius
        at_side = box[0] < x0 + r or box[2] > x1 - r
        return not (at_side and (box[1] < y0 + r or box[3] > y1 - r))

    @property
    def number(self) -> int:
        """Number of the window; only a window's layer is asked for it."""
        assert isinstance(self.key, int)
        return self.key

    @property
    def is_menu(self) -> bool:
        """Whether it is a level of an open menu."""
        return isinstance(self.key, str) and self.key.startswith("popup")


class Surface:
    """A layer's image; a copy shares its pixels until either is painted on."""

    def __init__(self, width: int, height: int) -> None:
        self.pixels: ByteArray = np.empty((height, width, 3), np.uint8)
        self.items: list[Item] = []
        self._is_shared = False

    def copy(self) -> Surface:
        """Another that shows the same."""
        self._is_shared = True
        return copy(self)

    def show(self, items: list[Item]) -> list[Box]:
        """Repaint what differs from what was shown; gives where."""
        if items is self.items:
            return []
        before, self.items = self.items, items
        whole = (0, 0, self.pixels.shape[1], self.pixels.shape[0])
        boxes = union([cut(box, whole) for box in _changes(before, items)]) if before else [whole]
        if boxes and self._is_shared:
            self.pixels, self._is_shared = self.pixels.copy(), False
        for box in boxes:
            self._repaint(box)
        return boxes

    def _repaint(self, box: Box) -> None:
        """Paint what is seen in a box of it: from the front back to what fills that, and the other way."""
        pieces = []
        a, b, c, d = box
        for left, top, right, bottom, (x0, y0, x1, y1), painter, values in reversed(self.items):
            if left < c and a < right and top < d and b < bottom:
                # what the item, its clip and the box share; written out, since `cut` makes tuples of it
                x0, y0 = left if left > x0 else x0, top if top > y0 else y0
                x1, y1 = right if right < x1 else x1, bottom if bottom < y1 else y1
                x0, y0 = a if a > x0 else x0, b if b > y0 else y0
                x1, y1 = c if c < x1 else x1, d if d < y1 else y1
                if x0 < x1 and y0 < y1:
                    source = raster(painter, right - left, bottom - top, values)
                    if x0 != left or y0 != top or x1 != right or y1 != bottom:
                        source = source[y0 - top : y1 - top, x0 - left : x1 - left]
                    pieces.append((source, x0, y0))
                    if x0 == a and y0 == b and x1 == c and y1 == d and source.shape[2] == 3:
                        break
        else:
            self.pixels[b:d, a:c] = 0  # nothing fills it
        for source, x, y in reversed(pieces):
            paste(self.pixels, source, x, y)


class Compositor:
    """The screen: layers one over the other; a copy shares its pixels until either is painted on.

    Attributes:
        changed: where the last `show` has painted; no box is empty or reaches beyond the screen.
    """

    def __init__(self, size: tuple[int, int]) -> None:
        self.size = size
        self.pixels: ByteArray = np.empty((size[1], size[0], 3), np.uint8)
        self.changed: list[Box] = []
        self._surfaces: dict[int | str, Surface] = {}
        self._shown: tuple[Layer, ...] = ()
        self._is_shared = False

    def copy(self) -> Compositor:
        """Another that shows the same, and goes its own way."""
        self._is_shared = True
        other = copy(self)
        other._surfaces = {key: surface.copy() for key, surface in self._surfaces.items()}
        return other

    @property
    def num_bytes(self) -> int:
        """Bytes of memory that its images take."""
        return self.pixels.nbytes + sum(surface.pixels.nbytes for surface in self._surfaces.values())

    def show(self, layers: Sequence[Layer]) -> ByteArray:
        """Bring the screen up to date; the array given is overwritten by the next call."""
        if layers is self._shown:
            self.changed = []
            return self.pixels
        width, height = self.size
        changed = _moved(self._shown, layers) if self._shown else [(0, 0, width, height)]
        surfaces = self._surfaces
        for layer in layers:
            key, (x, y, x1, y1), view, _, _ = layer
            surface = surfaces.get(key)
            if surface is None or surface.pixels.shape[:2] != (y1 - y, x1 - x):
                surface = surfaces[key] = Surface(x1 - x, y1 - y)
            items = view.items
            if surface.items is not items:
                changed += [(a + x, b + y, c + x, d + y) for a, b, c, d in surface.show(items)]
        if len(surfaces) > len(layers):
            for key in surfaces.keys() - {layer.key for layer in layers}:
                del surfaces[key]
        self._shown = tuple(layers)
        if changed and self._is_shared:
            self.pixels, self._is_shared = self.pixels.copy(), False
        self.changed = union([cut(box, (0, 0, width, height)) for box in changed])
        for box in self.changed:
            for piece in _pieces(box, layers):
                self._compose(piece)
        return self.pixels

    def _compose(self, box: Box) -> None:
        x0, y0, x1, y1 = box
        if x0 >= x1 or y0 >= y1:
            return
        seen: list[Layer] = []
        for layer in reversed(self._shown):
            a, b, c, d = layer.reach
            if a < x1 and x0 < c and b < y1 and y0 < d:
                seen.append(layer)
                if layer.hides(box):
                    break
        else:
            self.pixels[y0:y1, x0:x1] = 0  # nothing lies behind
        for layer in reversed(seen):
            is_whole = layer.hides(box)
            if layer.shadow and not is_whole:
                shade(self.pixels, layer.box, layer.shadow, layer.radius, box)
            a, b, _, _ = layer.box
            left, top, right, bottom = cut(layer.box, box)
            if left >= right or top >= bottom:
                continue
            source = self._surfaces[layer.key].pixels[top - b : bottom - b, left - a : right - a]
            if layer.radius and not is_whole:
                paste_rounded(self.pixels, source, (left, top), layer.box, layer.radius)
            else:
                self.pixels[top:bottom, left:right] = source


def _pieces(box: Box, layers: Sequence[Layer]) -> list[Box]:
    """A box as one that a layer fills, and what is left around it: there one sees what lies behind."""
    x0, y0, x1, y1 = box
    for layer in reversed(layers):
        a, b, c, d = cut(layer.core, box)
        if layer.shadow and a < c and b < d and 2 * (c - a) * (d - b) > (x1 - x0) * (y1 - y0):
            return [(a, b, c, d), (x0, y0, x1, b), (x0, d, x1, y1), (x0, b, a, d), (c, b, x1, d)]
    return [box]


def paste(target: ByteArray, source: ByteArray, x: int, y: int) -> None:
    """Put an image on another; with a fourth channel, as far as that covers."""
    height, width = source.shape[:2]
    area = target[y : y + height, x : x + width]
    if source.shape[2] == 3:
        area[:] = source
    else:
        blend(area, source[..., 3], source[..., :3])


def _changes(before: list[Item], after: list[Item]) -> list[Box]:
    """Where two drawings differ."""
    if len(before) == len(after):
        different = [pair for pair in zip(before, after, strict=True) if pair[0] != pair[1]]
        return [_seen(item) for pair in different for item in pair]
    first, shorter = 0, min(len(before), len(after))
    while first < shorter and before[first] == after[first]:
        first += 1
    last = 0
    while last < shorter - first and before[-1 - last] == after[-1 - last]:
        last += 1
    return [_seen(item) for items in (before, after) for item in items[first : len(items) - last]]


def _seen(item: Item) -> Box:
    return cut(item[:4], item[4])


def _moved(before: Sequence[Layer], after: Sequence[Layer]) -> list[Box]:
    """Where layers came, went, or changed places."""
    if len(before) == len(after):
        pairs = zip(before, after, strict=True)
        if all(one is other or _place(one) == _place(other) for one, other in pairs):
            return []
    old, new = {layer.key: layer for layer in before}, {layer.key: layer for layer in after}
    kept = [layer.key for layer in before if layer.key in new]
    now = [layer.key for layer in after if layer.key in old]
    boxes = []
    for key in {**old, **new}:
        both = [layer for layer in (old.get(key), new.get(key)) if layer is not None]
        if len({_place(layer) for layer in both}) > 1 or len(both) < 2:
            boxes += [layer.reach for layer in both]
    for key, other in zip(kept, now, strict=True):
        if key != other:  # another order: what lies at this height is no longer the same
            boxes += [new[key].reach, new[other].reach]
    return boxes


def _place(layer: Layer) -> tuple[int | str, Box, int, int]:
    """What a layer covers."""
    return layer.key, layer.box, layer.radius, layer.shadow


def union(boxes: list[Box]) -> list[Box]:
    """Boxes that cover the same, none empty or within another; one if they are many."""
    kept: list[Box] = []
    for box in boxes:
        x0, y0, x1, y1 = box
        if x0 >= x1 or y0 >= y1:
            continue
        for a, b, c, d in reversed(kept):  # what lies around a part has mostly just been met
            if a <= x0 and b <= y0 and c >= x1 and d >= y1:
                break
        else:
            kept = [k for k in kept if x0 > k[0] or y0 > k[1] or x1 < k[2] or y1 < k[3]]
            kept.append(box)
    if len(kept) < MANY_BOXES:
        return kept
    columns = list(zip(*kept, strict=True))
    return [(min(columns[0]), min(columns[1]), max(columns[2]), max(columns[3]))]
