"""Overlap of boxes and polygons, in whatever unit they are given; pure arithmetic.

Boxes are (x0, y0, x1, y1) with x0 ≤ x1 and y0 ≤ y1 on a continuous plane: a box that is 10 wide and 10 high
has an area of 100, and boxes that only touch share nothing. A box or polygon without area overlaps nothing,
not even itself.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

BoxTuple: TypeAlias = tuple[float, float, float, float]
PointTuple: TypeAlias = tuple[float, float]
Array: TypeAlias = npt.NDArray[np.float64]

_SLABS_AT_ONCE = 1024


def iou_matrix(rows: Sequence[BoxTuple], columns: Sequence[BoxTuple]) -> Array:
    """IoU of every box of `rows` with every box of `columns`: [len(rows), len(columns)] float64."""
    a = np.asarray(rows, np.float64).reshape(-1, 1, 4)
    b = np.asarray(columns, np.float64).reshape(1, -1, 4)
    sides = np.minimum(a[..., 2:], b[..., 2:]) - np.maximum(a[..., :2], b[..., :2])
    shared = np.clip(sides, 0, None).prod(-1)
    union = (a[..., 2:] - a[..., :2]).prod(-1) + (b[..., 2:] - b[..., :2]).prod(-1) - shared
    found: Array = np.divide(shared, union, out=np.zeros_like(shared), where=union > 0)
    return found


def iou(a: BoxTuple, b: BoxTuple) -> float:
    """Intersection over union, |a ∩ b| / |a ∪ b|, in [0, 1]."""
    union = _area(a) + _area(b) - _shared(a, b)
    return _shared(a, b) / union if union > 0 else 0.0


def giou(a: BoxTuple, b: BoxTuple) -> float:
    """Generalised IoU: IoU − |hull − a ∪ b| / |hull|, in [−1, 1] (Rezatofighi et al. 2019, Algorithm 1)."""
    hull = _area(_hull(a, b))
    union = _area(a) + _area(b) - _shared(a, b)
    return iou(a, b) - ((hull - union) / hull if hull > 0 else 1.0)


def diou(a: BoxTuple, b: BoxTuple) -> float:
    """Distance IoU: IoU − (distance of centres / diagonal of the hull)², in [−1, 1] (Zheng et al. 2020)."""
    x0, y0, x1, y1 = _hull(a, b)
    diagonal = math.hypot(x1 - x0, y1 - y0)
    return iou(a, b) - ((math.dist(centre(a), centre(b)) / diagonal) ** 2 if diagonal > 0 else 1.0)


def centre(box: BoxTuple) -> PointTuple:
    """The middle of a box."""
    return (box[0] + box[2]) / 2, (box[1] + box[3]) / 2


def contains(box: BoxTuple, point: PointTuple) -> bool:
    """True for a point in the box or on its edge."""
    return box[0] <= point[0] <= box[2] and box[1] <= point[1] <= box[3]


def distance_to_box(box: BoxTuple, point: PointTuple) -> float:
    """How far a point lies from the nearest point of a box; 0 inside."""
    (x, y), (x0, y0, x1, y1) = point, box
    return math.hypot(max(x0 - x, 0.0, x - x1), max(y0 - y, 0.0, y - y1))


def polygon_iou(a: Sequence[PointTuple], b: Sequence[PointTuple]) -> float:
    """Intersection over union of two polygons, in [0, 1], exact up to rounding.

    A polygon is its corners in order, the last joined to the first; it may be concave. Where it crosses
    itself, a point is inside if a line from it to infinity crosses an odd number of edges.

    The plane is cut into slabs at every corner and every crossing of two edges, so that within a slab no
    edges cross and every piece is a trapezium: at most O(E²) slabs of O(E) edges.
    """
    edges, owner = _edges(a, b)
    cuts = _slab_borders(edges)
    shared = union = 0.0
    for begin in range(0, len(cuts) - 1, _SLABS_AT_ONCE):
        left, right = cuts[begin : begin + _SLABS_AT_ONCE], cuts[begin + 1 : begin + 1 + _SLABS_AT_ONCE]
        left = left[: len(right)]
        both, either = _slab_heights(edges, owner, (left + right) / 2)
        shared += float((both * (right - left)).sum())
        union += float((either * (right - left)).sum())
    return min(shared / union, 1.0) if union > 0 else 0.0


def _area(box: BoxTuple) -> float:
    return (box[2] - box[0]) * (box[3] - box[1])


def _shared(a: BoxTuple, b: BoxTuple) -> float:
    width, height = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    return width * height if width > 0 and height > 0 else 0.0


def _hull(a: BoxTuple, b: BoxTuple) -> BoxTuple:
    return min(a[0], b[0]), min(a[1], b[1]), max(a[2], b[2]), max(a[3], b[3])


def _edges(a: Sequence[PointTuple], b: Sequence[PointTuple]) -> tuple[Array, npt.NDArray[np.bool_]]:
    """[E, 4] edges (x0, y0, x1, y1) from left to right, none upright; [E] True for those of `b`."""
    both = [np.asarray(corners, np.float64).reshape(-1, 2) for corners in (a, b)]
    edges = np.concatenate([np.hstack([corners, np.roll(corners, -1, axis=0)]) for corners in both])
    owner = np.repeat([False, True], [len(corners) for corners in both])
    swapped = edges[:, 0] > edges[:, 2]
    edges[swapped] = edges[swapped][:, [2, 3, 0, 1]]
    slanted = edges[:, 0] < edges[:, 2]
    return edges[slanted], owner[slanted]


def _slab_borders(edges: Array) -> Array:
    """The x of every corner and of every crossing of two edges, ascending."""
    x0, y0, x1, y1 = edges.T
    slope = (y1 - y0) / (x1 - x0)
    intercept = y0 - slope * x0
    first, second = np.triu_indices(len(edges), 1)
    turn = slope[first] - slope[second]
    crossing = np.divide(
        intercept[second] - intercept[first], turn, out=np.full(len(turn), np.nan), where=turn != 0
    )
    low, high = np.maximum(x0[first], x0[second]), np.minimum(x1[first], x1[second])
    inside = (crossing > low) & (crossing < high)
    return np.unique(np.concatenate([x0, x1, crossing[inside]]))


def _slab_heights(edges: Array, owner: npt.NDArray[np.bool_], middles: Array) -> tuple[Array, Array]:
    """How high the polygons' intersection and union stand over the middle of each slab: two [num_slabs]."""
    x0, y0, x1, y1 = edges.T
    x = middles[:, None]
    there = (x0 < x) & (x < x1)
    y = np.where(there, y0 + (y1 - y0) * ((x - x0) / (x1 - x0)), np.inf)
    order = np.argsort(y, axis=1)
    sorted_y, there = np.take_along_axis(y, order, 1), np.take_along_axis(there, order, 1)
    of_b = owner[order]
    in_a = np.cumsum(there & ~of_b, axis=1)[:, :-1] % 2 == 1
    in_b = np.cumsum(there & of_b, axis=1)[:, :-1] % 2 == 1
    gaps = np.where(there[:, 1:], np.diff(np.where(there, sorted_y, 0.0), axis=1), 0.0)
    return (gaps * (in_a & in_b)).sum(1), (gaps * (in_a | in_b)).sum(1)
