"""Masks on a grid of pixels: read from run lengths or polygons, bounded in size before anything is allocated.

A grid of height × width cells is spread over the whole image, so grids of different sizes can be compared;
cell (row, column) belongs to a polygon if its centre does (even-odd rule).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from vlrl.parsing.geometry import PointTuple
from vlrl.parsing.places import POLYGON_KEYS, Polygon, polygon_of
from vlrl.parsing.strict_json import Unreadable, strict_json, unfenced

MaskGrid: TypeAlias = npt.NDArray[np.bool_]
"""[height, width] bool, True inside."""

MAX_SIDE = 8192
MAX_CELLS = 2**24
"""Cells of one grid: 16 MiB as bool."""
MAX_RUNS = 100_000
MAX_PARTS = 32
"""Polygons of one mask; a mask in several pieces is their union."""

Region: TypeAlias = MaskGrid | tuple[Polygon, ...]


def read_region(text: str) -> Region:
    """The mask of a text that is nothing but one: run lengths as a grid, or polygons as they are.

    Raises:
        Unreadable: if the text is anything else.
    """
    return region_of(strict_json(unfenced(text)))


def region_of(value: Any) -> Region:
    """The mask of a value: COCO's {"size": [height, width], "counts": …}, one polygon, or a list of polygons.

    Raises:
        Unreadable: if it is anything else.
    """
    if isinstance(value, Mapping) and "counts" in value:
        return grid_of_runs(value)
    if isinstance(value, Mapping) and sum(key in value for key in POLYGON_KEYS) == 1:
        value = next(value[key] for key in POLYGON_KEYS if key in value)
    if not isinstance(value, Sequence) or isinstance(value, str | bytes) or not value:
        raise Unreadable("a mask is run lengths, a polygon, or a list of polygons")
    if _is_polygon(value):
        return (polygon_of(value),)
    if len(value) > MAX_PARTS:
        raise Unreadable(f"{len(value)} polygons; {MAX_PARTS} are read at most")
    return tuple(polygon_of(part) for part in value)


def grid_of_runs(value: Mapping[str, Any]) -> MaskGrid:
    """COCO's run lengths, down the columns and outside first: a list, or their compressed text.

    Not by pycocotools: its decoder writes as many cells as the counts say, whatever the size is.

    Raises:
        Unreadable: unless the size is within bounds and the runs fill it exactly.
    """
    size, counts = value.get("size"), value["counts"]
    if set(value) != {"size", "counts"} or not isinstance(size, Sequence) or len(size) != 2:
        raise Unreadable("run lengths are {size: [height, width], counts: …}")
    height, width = (_whole(side, MAX_SIDE) for side in size)
    if not 0 < height * width <= MAX_CELLS:
        raise Unreadable(f"a mask of {height}×{width}; from 1 to {MAX_CELLS} cells are read")
    if isinstance(counts, str | bytes):
        runs = _uncompressed(counts)
    elif isinstance(counts, Sequence) and len(counts) <= MAX_RUNS:
        runs = [_whole(count, MAX_CELLS) for count in counts]
    else:
        raise Unreadable(f"counts are a text or a list of at most {MAX_RUNS}")
    if sum(runs) != height * width:
        raise Unreadable(f"runs of {sum(runs)} cells in a mask of {height}×{width}")
    inside = np.arange(len(runs)) % 2 == 1
    return np.repeat(inside, runs).reshape(width, height).T


def grid_of_polygons(
    polygons: Sequence[Sequence[PointTuple]], size: tuple[int, int], extent: PointTuple
) -> MaskGrid:
    """The union of polygons on a grid: [height, width] bool.

    Args:
        polygons: corners in a plane that spans [0, extent].
        size: (height, width) of the grid.
        extent: (width, height) of the plane.
    """
    height, width = size
    rows = (np.arange(height) + 0.5) * (extent[1] / height)
    grid = np.zeros(size, np.bool_)
    for corners in polygons:
        toggles = np.zeros((height, width + 1), np.uint8)
        for (x0, y0), (x1, y1) in zip(corners, [*corners[1:], corners[0]], strict=True):
            # Half-open in y, so that a corner on a row's centre counts once.
            crossed = np.flatnonzero((np.minimum(y0, y1) <= rows) & (rows < np.maximum(y0, y1)))
            if len(crossed):
                x = x0 + (x1 - x0) * ((rows[crossed] - y0) / (y1 - y0))
                first = np.clip(np.ceil(x * (width / extent[0]) - 0.5), 0, width).astype(np.int64)
                toggles[crossed, first] ^= 1  # a row is crossed once by an edge: no index stands twice
        grid |= np.bitwise_xor.accumulate(toggles[:, :width], axis=1).astype(np.bool_)
    return grid


def spread_over(grid: MaskGrid, size: tuple[int, int]) -> MaskGrid:
    """A grid at another size: each cell takes the value of the old cell at its centre."""
    if grid.shape == size:
        return grid
    rows, columns = (
        (np.arange(new) * 2 + 1) * old // (2 * new) for new, old in zip(size, grid.shape, strict=True)
    )
    found: MaskGrid = grid[rows[:, None], columns]
    return found


def grid_size(width: float, height: float) -> tuple[int, int]:
    """(height, width) of the grid of an image: its pixels, or fewer if it has more than MAX_CELLS."""
    shrink = max(1.0, (width * height / MAX_CELLS) ** 0.5, max(width, height) / MAX_SIDE)
    return max(1, int(height / shrink)), max(1, int(width / shrink))


def _is_polygon(value: Sequence[Any]) -> bool:
    """True for [x, y, …] and [[x, y], …]; a list of polygons nests deeper, or holds longer lists."""
    first = value[0]
    if isinstance(first, Mapping):
        return False
    if not isinstance(first, Sequence) or isinstance(first, str | bytes):
        return True
    return len(first) == 2 and not isinstance(first[0], Sequence)


def _uncompressed(text: str | bytes) -> list[int]:
    """COCO's compressed runs: 5 bits a character, low first; from the fourth on, minus the one two before."""
    codes = text if isinstance(text, bytes) else text.encode("utf-8", "replace")
    if len(codes) > MAX_RUNS:
        raise Unreadable(f"{len(codes)} characters of runs; {MAX_RUNS} are read at most")
    runs: list[int] = []
    value = shift = 0
    for code in codes:
        bits = code - 48
        if not 0 <= bits < 64 or shift > 30:
            raise Unreadable("counts hold what is not a run length")
        value |= (bits & 31) << shift
        shift += 5
        if bits & 32:
            continue
        if bits & 16:
            value -= 1 << shift
        if len(runs) > 2:
            value += runs[-2]
        if not 0 <= value <= MAX_CELLS:
            raise Unreadable("a run length below 0 or beyond the largest mask")
        runs.append(value)
        value = shift = 0
    if shift:
        raise Unreadable("counts end within a number")
    return runs


def _whole(value: Any, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= most:
        raise Unreadable(f"a whole number from 0 to {most} is asked for")
    if value != int(value):
        raise Unreadable(f"{value:g} is not a whole number")
    return int(value)
