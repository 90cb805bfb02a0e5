"""Rewards on one place in an image: a box, a point or a polygon.

What the model writes is read by `vlrl.parsing.places`, which says in which forms; what is in none of them
scores 0, and so do text around a place and a second place. Nothing is rounded. The options that all of them
share are those of `vlrl.rewards.visual.placed`.

Every one of them raises ValueError for a sample whose answer is missing, unreadable, empty or off the
image, and ConfigError for an unknown frame.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from vlrl.errors import ConfigError
from vlrl.parsing import geometry
from vlrl.parsing.frames import box_tuple, point_tuple
from vlrl.parsing.geometry import BoxTuple, PointTuple
from vlrl.parsing.places import boxes_of, point_of, polygon_of, read_boxes, read_point, read_polygon
from vlrl.rewards.visual.placed import Placed, placed
from vlrl.scoring.author import prepared_by, reward


@reward(range=(0.0, 1.0))
@prepared_by(placed)
def box_iou(pair: Placed) -> float:
    """IoU of the one box written with the true box: |a ∩ b| / |a ∪ b|.

    Range [0, 1]. Source: VLM-R1's reward of referring expressions (arXiv 2504.07615, 3.2), registered as
    vlm_r1_rec too. No box, two boxes or a box without area score 0; a box around the whole image scores
    the share of the image that the true box covers.
    """
    return _on_boxes(pair, geometry.iou)


@reward(range=(0.0, 1.0))
@prepared_by(placed)
def box_iou_threshold(pair: Placed, *, threshold: float = 0.5) -> float:
    """1 if the IoU of the box written with the true box is at least `threshold`, else 0.

    Range {0, 1}. Source: accuracy at IoU 0.5 of RefCOCO (Yu et al. 2016). Scores 0 where `box_iou` does.

    Raises:
        ConfigError: unless 0 < threshold ≤ 1.
    """
    if not 0 < threshold <= 1:
        raise ConfigError(f"threshold={threshold} must lie above 0 and not above 1")
    return _on_boxes(pair, lambda a, b: float(geometry.iou(a, b) >= threshold))


@reward(range=(0.0, 1.0))
@prepared_by(placed)
def box_giou(pair: Placed, *, floor: float = 0.0) -> float:
    """max(0, (G − floor) / (1 − floor)), with G the generalised IoU of the box written with the true box.

    G = IoU − |hull − a ∪ b| / |hull| (Rezatofighi et al. 2019, arXiv 1902.09630, Algorithm 1), in [−1, 1].
    Range [0, 1]. With floor 0 boxes apart score 0. floor −1 is (1 + G) / 2, by which near boxes apart score
    more than far ones, at a price: any box at all then scores, a box around the whole image above 0.5.

    Raises:
        ConfigError: unless −1 ≤ floor < 1.
    """
    return _on_boxes(pair, _from_floor(geometry.giou, floor))


@reward(range=(0.0, 1.0))
@prepared_by(placed)
def box_diou(pair: Placed, *, floor: float = 0.0) -> float:
    """max(0, (D − floor) / (1 − floor)), with D the distance IoU of the box written with the true box.

    D = IoU − (distance of the centres / diagonal of the hull)² (Zheng et al. 2020, arXiv 1911.08287, Eq. 7),
    in [−1, 1], of boxes in original pixels. Range [0, 1]; `floor` as in `box_giou`.

    Raises:
        ConfigError: unless −1 ≤ floor < 1.
    """
    return _on_boxes(pair, _from_floor(geometry.diou, floor))


@reward(range=(0.0, 1.0))
@prepared_by(placed)
def point_in_box(pair: Placed) -> float:
    """1 if the one point written lies in the true box or on its edge, else 0.

    Range {0, 1}. Source: click accuracy of ScreenSpot (Cheng et al. 2024, arXiv 2401.10935). No point and
    two points score 0. `vlrl.rewards.agents.gui` has the reward on a whole action.
    """
    box, point = _true_box(pair), pair.written(read_point)
    return 0.0 if point is None else float(geometry.contains(box, point_tuple(pair.frames.said(point))))


@reward(range=(0.0, 1.0))
@prepared_by(placed)
def point_distance(pair: Placed, *, sigma: float = 0.05) -> float:
    """exp(−d / sigma), d the distance of the point written from the true point over the image's diagonal.

    The answer is a point, or a box, whose centre is meant. Range [0, 1]. Ours. With the default a miss by a
    twentieth of the diagonal scores 0.37, by a quarter 0.007; no point and two points score 0.

    Raises:
        ConfigError: unless sigma > 0.
    """
    if not sigma > 0:
        raise ConfigError(f"sigma={sigma} must be above 0")
    target, point = _true_point(pair), pair.written(read_point)
    if point is None:
        return 0.0
    return math.exp(-math.dist(point_tuple(pair.frames.said(point)), target) / pair.frames.diagonal / sigma)


@reward(range=(0.0, 1.0))
@prepared_by(placed)
def polygon_iou(pair: Placed) -> float:
    """IoU of the one polygon written with the true polygon, exact: nothing is drawn on a grid.

    Range [0, 1]. Polygons may be concave; one that crosses itself is filled by the even-odd rule. No polygon,
    two, more than 128 corners and polygons without area score 0.
    """
    corners = pair.true(read_polygon, polygon_of, "a polygon")
    target = [point_tuple(pair.frames.true(corner)) for corner in corners]
    if not geometry.polygon_iou(target, target):
        raise ValueError("the sample's answer is a polygon without area")
    said = pair.written(read_polygon)
    if said is None:
        return 0.0
    return geometry.polygon_iou([point_tuple(pair.frames.said(corner)) for corner in said], target)


def _on_boxes(pair: Placed, measure: Callable[[BoxTuple, BoxTuple], float]) -> float:
    """A measure of the one box written and the true box; 0 without one."""
    target, boxes = _true_box(pair), pair.written(read_boxes)
    if not boxes or len(boxes) > 1:
        return 0.0
    return measure(box_tuple(pair.frames.said(boxes[0].box)), target)


def _from_floor(
    measure: Callable[[BoxTuple, BoxTuple], float], floor: float
) -> Callable[[BoxTuple, BoxTuple], float]:
    if not -1 <= floor < 1:
        raise ConfigError(f"floor={floor} must lie between -1 and 1")
    return lambda a, b: max(0.0, (measure(a, b) - floor) / (1 - floor))


def _true_box(pair: Placed) -> BoxTuple:
    boxes = pair.true(read_boxes, boxes_of, "one box")
    if len(boxes) != 1:
        raise ValueError(f"the sample's answer holds {len(boxes)} boxes; one is asked for")
    found = pair.frames.true(boxes[0].box)
    if found.x0 == found.x1 or found.y0 == found.y1:
        raise ValueError("the sample's answer is a box without area")
    return box_tuple(found)


def _true_point(pair: Placed) -> PointTuple:
    """The answer's point, or the centre of its box."""
    try:
        point = pair.true(read_point, point_of, "a point or a box")
    except ValueError:
        return geometry.centre(_true_box(pair))
    return point_tuple(pair.frames.true(point))
