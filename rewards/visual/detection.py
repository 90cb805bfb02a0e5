"""Rewards on all the boxes of an image at once: object detection, also with an open vocabulary.

What the model writes is read by `vlrl.parsing.places`. A text in none of its forms scores 0; [] and None say
that there is nothing. Where the answer holds no box, saying so scores 1 and any box 0; where it holds one,
saying there is nothing scores 0. Boxes are compared in the image's original pixels; a label is compared
without regard to case and to white space. Common options, beside those of `vlrl.rewards.visual.placed`:

    match_labels  False compares places alone; it is so anyway where the answer's boxes have no labels
    strict        False is the peer's own formula, holes and all, to reproduce its numbers

Below P and T are the boxes written and the true ones, M the matched pairs, precision = |M| / |P| and
recall = |M| / |T|. With `strict`, copies of a box, boxes all over the image and boxes
under a wrong label are false boxes and cost what they should.

Every one of them raises ValueError for a sample whose answer is missing, unreadable, labelled in part, off
the image or holds a box without area, and ConfigError for an option out of range.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from vlrl.errors import ConfigError
from vlrl.rewards.visual.average_precision import COCO_THRESHOLDS, average_precision
from vlrl.rewards.visual.matching import greedy_match, hungarian_match
from vlrl.rewards.visual.scene import BoxScene, read_scene
from vlrl.scoring.author import prepared_by, reward

ROLL_THRESHOLDS = (*COCO_THRESHOLDS, 0.99)
MATCHERS = {"greedy": greedy_match, "hungarian": hungarian_match}


@reward(range=(0.0, 1.0))
@prepared_by(read_scene)
def detection_f1(
    scene: BoxScene, *, iou_threshold: float = 0.5, matching: Literal["greedy", "hungarian"] = "greedy"
) -> float:
    """F1 = 2·|M| / (|P| + |T|), pairs of one label whose IoU is at least `iou_threshold`.

    Range [0, 1]. Greedy takes the greatest IoU first; hungarian finds as many pairs as there can be, so its
    F1 is never below greedy's. A box written k times scores 2 / (k + 1) where one is true.
    """
    if matching not in MATCHERS:
        raise ConfigError(f"matching={matching!r}; give one of {', '.join(MATCHERS)}")
    _require_thresholds([iou_threshold])
    if scene.settled is not None:
        return scene.settled
    pairs = MATCHERS[matching](scene.overlap() * scene.same_label(), iou_threshold)
    return 2 * len(pairs) / (len(scene.written or ()) + len(scene.true))


@reward(range=(0.0, 1.0))
@prepared_by(read_scene)
def vlm_r1_weighted_sum(
    scene: BoxScene,
    *,
    iou_threshold: float = 0.5,
    position_weight: float = 0.7,
    label_weight: float = 0.0,
    completeness_weight: float = 0.3,
    strict: bool = True,
) -> float:
    """(α·ΣIoU(M) / n + β·|right labels in M| / n + γ·completeness) / (α + β + γ), with greedy pairs M.

    VLM-R1: n = |T|, completeness = 1 − (miss + false alarm) / 2 = (precision + recall) / 2, and boxes of
    different labels are paired too, with IoU 0. Strict: n = max(|P|, |T|), completeness = min(precision,
    recall), pairs of one label only; the same number where |P| = |T| and every pair has the right label.

    Range [0, 1]. Source: VLM-R1, `weighted_sum` (α 0.7, β 0, γ 0.3).
    """
    weights = (position_weight, label_weight, completeness_weight)
    if min(weights) < 0 or sum(weights) <= 0:
        raise ConfigError(f"the three weights {weights} must not be negative, and not all 0")
    _require_thresholds([iou_threshold])
    if scene.settled is not None:
        return scene.settled
    same, overlap = scene.same_label(), scene.overlap()
    pairs = greedy_match(overlap * same if strict else overlap, iou_threshold)
    precision, recall = scene.rates(pairs)
    most = max(same.shape) if strict else len(scene.true)
    position = sum(float(overlap[pair]) for pair in pairs if same[pair]) / most
    named = sum(bool(same[pair]) for pair in pairs) / most
    completeness = min(precision, recall) if strict else (precision + recall) / 2
    terms = (position, named, completeness)
    return sum(w * term for w, term in zip(weights, terms, strict=True)) / sum(weights)


@reward(range=(0.0, 1.0))
@prepared_by(read_scene)
def detection_completeness(
    scene: BoxScene,
    *,
    iou_thresholds: Sequence[float] = ROLL_THRESHOLDS,
    position_weight: float = 0.0,
    strict: bool = True,
) -> float:
    """Mean over IoU thresholds of w·ΣIoU(M) / n + (1 − w)·completeness, with greedy pairs M.

    n and completeness as in `vlm_r1_weighted_sum`, in both senses of `strict`. Range [0, 1]. Source: ROLL,
    detection_reward_worker.py, `iou_max_iou_first` (its eleven thresholds from 0.5 to 0.99).
    """
    if not 0 <= position_weight <= 1:
        raise ConfigError(f"position_weight={position_weight} must lie in [0, 1]")
    _require_thresholds(iou_thresholds)
    if scene.settled is not None:
        return scene.settled
    same, overlap, total = scene.same_label(), scene.overlap(), 0.0
    most = max(same.shape) if strict else len(scene.true)
    for threshold in iou_thresholds:
        pairs = greedy_match(overlap * same if strict else overlap, threshold)
        rates = scene.rates(pairs)
        position = sum(float(overlap[pair]) for pair in pairs if same[pair]) / most
        completeness = min(rates) if strict else sum(rates) / 2
        total += position_weight * position + (1 - position_weight) * completeness
    return total / len(iou_thresholds)


@reward(range=(0.0, 1.0))
@prepared_by(read_scene)
def od_ap(
    scene: BoxScene, *, iou_thresholds: Sequence[float] = COCO_THRESHOLDS, strict: bool = True
) -> float:
    """Mean average precision of one image over IoU 0.5, 0.55, … 0.95.

    VLM-R1: COCO's, with every score 1; then the order of writing ranks the boxes, false boxes after the right
    ones cost nothing, and boxes under labels that the answer has not cost nothing anywhere. Strict: precision
    · recall of each label on either side. See `vlrl.rewards.visual.average_precision`.

    Range [0, 1]. Source: VLM-R1, `od_ap`; COCO (Lin et al. 2014) through pycocotools.
    """
    _require_thresholds(iou_thresholds)
    return _precision(scene, iou_thresholds, strict)


@reward(range=(0.0, 1.0))
@prepared_by(read_scene)
def od_ap50(scene: BoxScene, *, strict: bool = True) -> float:
    """`od_ap` at the one threshold of IoU 0.5. Range [0, 1]. Source: VLM-R1, `od_ap50`."""
    return _precision(scene, [0.5], strict)


@reward(range=(0.0, 1.0))
@prepared_by(read_scene)
def od_length(
    scene: BoxScene, *, iou_thresholds: Sequence[float] = COCO_THRESHOLDS, strict: bool = True
) -> float:
    """The mAP times min(1, |T| / |P|), with the mAP of `od_ap` in both senses of `strict`.

    Range [0, 1]. Source: VLM-R1, `odLength`, the reward of its open-vocabulary detection (arXiv 2504.07615,
    3.2), registered as vlm_r1_ovd too.
    """
    _require_thresholds(iou_thresholds)
    surplus = len(scene.true) / len(scene.written) if scene.written else 1.0
    return _precision(scene, iou_thresholds, strict) * min(1.0, surplus)


def _precision(scene: BoxScene, thresholds: Sequence[float], strict: bool) -> float:
    if scene.settled is not None:
        return scene.settled
    written = scene.written or []
    if not strict and not {label for label, _ in written} & {label for label, _ in scene.true}:
        return 0.0
    return average_precision(written, scene.true, thresholds, ranked=not strict)


def _require_thresholds(thresholds: Sequence[float]) -> None:
    if not thresholds or not all(0 < threshold <= 1 for threshold in thresholds):
        raise ConfigError(f"IoU thresholds {list(thresholds)} must lie above 0 and not above 1")
