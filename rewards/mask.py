"""Rewards on a mask: how much of it is covered, and whether a point lies in it.

A mask, written or given as the answer, is a JSON value:

    run lengths   {"size": [height, width], "counts": [outside, inside, outside, …]}, down the columns, or
                  COCO's compressed text as counts; the grid is spread over the whole image, whatever its size
    polygons      [[x, y], …], [x, y, x, y, …] or {"polygon": …}; or a list of at most 32, whose
                  union counts

Polygons written are in `frame`, those of the answer in `answer_frame`; the options are those of
`vlrl.rewards.grounding`. Model output is data: sizes are bounded before anything is allocated
(`vlrl.rewards.mask_grids`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from vlrl.errors import ConfigError
from vlrl.processors.coordinates import Canvas, CoordinateFrame, Point
from vlrl.rewards.extract import Part, scored_text
from vlrl.rewards.frames import Frames, open_frames, point_tuple
from vlrl.rewards.geometry import PointTuple
from vlrl.rewards.grounding import PIXELS
from vlrl.rewards.mask_grids import (
    MaskGrid,
    Region,
    grid_of_polygons,
    grid_size,
    read_region,
    region_of,
    spread_over,
)
from vlrl.rewards.places import of_answer, point_of, read_point, try_read
from vlrl.rewards.scoring.author import reward
from vlrl.rewards.strict_json import Unreadable, strict_json, unfenced
from vlrl.types import Media

MOST_POINTS = 100


@reward(range=(0.0, 1.0))
def mask_iou(
    completion: str,
    answer: Any,
    *,
    canvases: Sequence[Canvas | Media],
    threshold: float = 0.0,
    frame: CoordinateFrame | None = None,
    answer_frame: CoordinateFrame = PIXELS,
    media_index: int = 0,
    part: Part = "answer",
    **context: Any,
) -> float:
    """IoU of the mask written with the true mask, |a ∩ b| / |a ∪ b| in cells; 0 below a threshold.

    Compared on the true mask's grid: that of its run lengths, or the image's own pixels for polygons.
    Range {0} ∪ [threshold, 1]. Source: COCO's segmentation IoU (Lin et al. 2014, arXiv 1405.0312) with the
    rule of pixel centres. What is no mask, an empty one, and run lengths that do not fill their size score 0;
    a mask of the whole image scores the share of the image that the true one covers.

    Args:
        completion: what the model wrote.
        answer: the true mask.
        canvases: sizes of the sample's media.
        threshold: IoUs below it score 0.
        frame: of polygons written; None is what the model's family was taught.
        answer_frame: of the answer's polygons.
        media_index: which of the sample's media.
        part: "answer" or "whole".
        context: not looked at.

    Raises:
        ValueError: for a sample whose answer is missing, unreadable, empty or off the image.
        ConfigError: unless 0 ≤ threshold ≤ 1; for an unknown frame.
    """
    if not 0 <= threshold <= 1:
        raise ConfigError(f"threshold={threshold} must lie from 0 to 1")
    frames = open_frames(canvases, media_index, frame, answer_frame)
    target = _true_grid(answer, frames)
    region: Region | None = try_read(read_region, scored_text(completion, part))
    if region is None:
        return 0.0
    said = _grid(region, frames, (target.shape[0], target.shape[1]), frames.said)
    value = int(np.count_nonzero(said & target)) / int(np.count_nonzero(said | target))
    return value if value >= threshold else 0.0


@reward(range=(0.0, 1.0))
def point_in_mask(
    completion: str,
    answer: Any,
    *,
    canvases: Sequence[Canvas | Media],
    most: int = 1,
    frame: CoordinateFrame | None = None,
    answer_frame: CoordinateFrame = PIXELS,
    media_index: int = 0,
    part: Part = "answer",
    **context: Any,
) -> float:
    """The share of the points written that lie in the true mask.

    With `most` 1 one point, in any form of `vlrl.rewards.places`, is right or wrong: {0, 1}. With more, a
    JSON list of at most so many points is taken too, and the value is |points inside| / |points|, as
    RoboPoint has it (Yuan et al. 2024, arXiv 2406.10721, section 4). Range [0, 1]. No point and more
    than `most` score 0; one point repeated is worth no more than the point itself.

    Args:
        completion: what the model wrote.
        answer: the true mask.
        canvases: sizes of the sample's media.
        most: points at most.
        frame: of the points written; None is what the model's family was taught.
        answer_frame: of the answer's polygons.
        media_index: which of the sample's media.
        part: "answer" or "whole".
        context: not looked at.

    Raises:
        ValueError: for a sample whose answer is missing, unreadable, empty or off the image.
        ConfigError: unless 1 ≤ most ≤ MOST_POINTS; for an unknown frame.
    """
    if not 1 <= most <= MOST_POINTS:
        raise ConfigError(f"most={most} must lie from 1 to {MOST_POINTS}")
    frames = open_frames(canvases, media_index, frame, answer_frame)
    target = _true_grid(answer, frames)
    points = try_read(_points_reader(most), scored_text(completion, part))
    if not points:
        return 0.0
    return sum(_covers(target, point_tuple(frames.said(point)), frames) for point in points) / len(points)


def _true_grid(answer: Any, frames: Frames) -> MaskGrid:
    """The answer's mask on its own grid.

    Raises:
        ValueError: if there is none, or one without a cell.
    """
    region: Region = of_answer(answer, read_region, region_of, "a mask")
    height, width = frames.canvas.original_size
    size = region.shape if isinstance(region, np.ndarray) else grid_size(width, height)
    grid = _grid(region, frames, (size[0], size[1]), frames.true)
    if not grid.any():
        raise ValueError("the sample's answer is an empty mask")
    return grid


def _grid(region: Region, frames: Frames, size: tuple[int, int], place: Callable[[Point], Point]) -> MaskGrid:
    if isinstance(region, np.ndarray):
        return spread_over(region, size)
    height, width = frames.canvas.original_size
    polygons = [[point_tuple(place(corner)) for corner in polygon] for polygon in region]
    return grid_of_polygons(polygons, size, (float(width), float(height)))


def _covers(grid: MaskGrid, point: PointTuple, frames: Frames) -> bool:
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
