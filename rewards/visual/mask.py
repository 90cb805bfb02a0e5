"""Rewards on a mask: how much of it is covered, and whether a point lies in it.

A mask, written or given as the answer, is a JSON value:

    run lengths   {"size": [height, width], "counts": [outside, inside, outside, …]}, down the columns, or
                  COCO's compressed text as counts; the grid is spread over the whole image, whatever its size
    polygons      [[x, y], …], [x, y, x, y, …] or {"polygon": …}; or a list of at most 32, whose
                  union counts

Polygons written are in `frame`, those of the answer in `answer_frame` (`vlrl.rewards.visual.placed`). Model
output is data: sizes are bounded before anything is allocated (`vlrl.rewards.visual.mask_grids`).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from vlrl.coordinates import Point
from vlrl.errors import ConfigError
from vlrl.parsing.frames import AnswerFrames, point_tuple
from vlrl.parsing.geometry import PointTuple
from vlrl.parsing.places import point_of, read_point
from vlrl.parsing.strict_json import Unreadable, strict_json, unfenced
from vlrl.rewards.visual.mask_grids import (
    MaskGrid,
    Region,
    grid_of_polygons,
    grid_size,
    read_region,
    region_of,
    spread_over,
)
from vlrl.rewards.visual.placed import Placed, placed
from vlrl.scoring.author import prepared_by, reward

MOST_POINTS = 100


@reward(range=(0.0, 1.0))
@prepared_by(placed)
def mask_iou(pair: Placed, *, threshold: float = 0.0) -> float:
    """IoU of the mask written with the true mask, |a ∩ b| / |a ∪ b| in cells; 0 below a threshold.

    Compared on the true mask's grid: that of its run lengths, or the image's own pixels for polygons.
    Range {0} ∪ [threshold, 1]. Source: COCO's segmentation IoU (Lin et al. 2014, arXiv 1405.0312) with the
    rule of pixel centres. What is not a mask, an empty mask, and run lengths that do not fill their size
    score 0; a mask of the whole image scores the share of the image that the true one covers.

    Args:
        pair: the mask written and the true mask.
        threshold: IoUs below it score 0.

    Raises:
        ValueError: for a sample whose answer is missing, unreadable, empty or off the image.
        ConfigError: unless 0 ≤ threshold ≤ 1; for an unknown frame.
    """
    if not 0 <= threshold <= 1:
        raise ConfigError(f"threshold={threshold} must lie from 0 to 1")
    frames = pair.frames
    target, region = _true_grid(pair), pair.written(read_region)
    if region is None:
        return 0.0
    said = _grid(region, frames, (target.shape[0], target.shape[1]), frames.said)
    value = int(np.count_nonzero(said & target)) / int(np.count_nonzero(said | target))
    return value if value >= threshold else 0.0


@reward(range=(0.0, 1.0))
@prepared_by(placed)
def point_in_mask(pair: Placed, *, most: int = 1) -> float:
    """The share of the points written that lie in the true mask.

    With `most` 1 one point, in any form of `vlrl.parsing.places`, is right or wrong: {0, 1}. With more, a
    JSON list of at most so many points is taken too, and the value is |points inside| / |points|, as
    RoboPoint has it (Yuan et al. 2024, arXiv 2406.10721, section 4). Range [0, 1]. No point and more
    than `most` score 0; one point repeated is worth no more than the point itself.

    Args:
        pair: the points written and the true mask.
        most: points at most.

    Raises:
        ValueError: for a sample whose answer is missing, unreadable, empty or off the image.
        ConfigError: unless 1 ≤ most ≤ MOST_POINTS; for an unknown frame.
    """
    if not 1 <= most <= MOST_POINTS:
        raise ConfigError(f"most={most} must lie from 1 to {MOST_POINTS}")
    frames = pair.frames
    target, points = _true_grid(pair), pair.written(_points_reader(most))
    if not points:
        return 0.0
    return sum(_covers(target, point_tuple(frames.said(point)), frames) for point in points) / len(points)


def _true_grid(pair: Placed) -> MaskGrid:
    """The answer's mask on its own grid.

    Raises:
        ValueError: if there is none, or one without a cell.
    """
    region, frames = pair.true(read_region, region_of, "a mask"), pair.frames
    height, width = frames.canvas.original_size
    size = region.shape if isinstance(region, np.ndarray) else grid_size(width, height)
    grid = _grid(region, frames, (size[0], size[1]), frames.true)
    if not grid.any():
        raise ValueError("the sample's answer is an empty mask")
    return grid


def _grid(
    region: Region, frames: AnswerFrames, size: tuple[int, int], place: Callable[[Point], Point]
) -> MaskGrid:
    if isinstance(region, np.ndarray):
        return spread_over(region, size)
    height, width = frames.canvas.original_size
    polygons = [[point_tuple(place(corner)) for corner in polygon] for polygon in region]
    return grid_of_polygons(polygons, size, (float(width), float(height)))


def _covers(grid: MaskGrid, point: PointTuple, frames: AnswerFrames) -> bool:
    """True if the cell under a point (original pixels) is in the mask; far edges are in the last cell."""
    height, width = frames.canvas.original_size
    (x, y), (rows, columns) = point, grid.shape
    if not (0 <= x <= width and 0 <= y <= height):
        return False
    return bool(grid[min(int(y / height * rows), rows - 1), min(int(x / width * columns), columns - 1)])


def _points_reader(most: int) -> Callable[[str], list[Point]]:
    def read(text: str) -> list[Point]:
        try:
            return [read_point(text)]
        except Unreadable:
            if most == 1:
                raise
        items = strict_json(unfenced(text))
        if not isinstance(items, list) or not 0 < len(items) <= most:
            raise Unreadable(f"a list of 1 to {most} points is asked for")
        return [point_of(item) for item in items]

    return read
