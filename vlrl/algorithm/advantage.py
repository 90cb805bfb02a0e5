"""Group-relative advantages: how much better a completion was than the others of its group."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from vlrl.errors import ConfigError
from vlrl.ledger import FloatArray
from vlrl.rounding import all_equal


def group_advantages(rewards: Sequence[float], *, scale_by_std: bool) -> FloatArray:
    """GRPO's advantage, DeepSeekMath (arXiv 2402.03300) §4.1.2: A_i = (r_i - mean(r)) / std(r).

    Args:
        rewards: [n] of one group.
        scale_by_std: divide by the group's standard deviation (GRPO); False is Dr. GRPO
            (arXiv 2503.20783, Eq. 3), which drops it to avoid favouring groups of little spread.

    Returns:
        [n] float32. Exactly zero when the rewards differ by rounding alone (`vlrl.rounding.all_equal`):
        dividing that by its own deviation would be a gradient made of noise.

    Raises:
        ConfigError: for n = 1, which has no baseline.
    """
    values = np.asarray(rewards, dtype=np.float64)
    if values.size < 2:
        raise ConfigError("a group baseline needs rollout.group_size ≥ 2, got 1")
    if all_equal(values):
        return np.zeros(values.size, dtype=np.float32)
    if scale_by_std:
        values = _sized(values)
    centred = values - values.mean()
    if scale_by_std:
        centred /= values.std(ddof=1)  # the unbiased deviation, as TRL and DeepSeek's reference code use
    advantages: FloatArray = centred.astype(np.float32)
    return advantages


def tree_advantages(
    rewards: Sequence[float], trees: Sequence[int], *, scale_by_std: bool
) -> tuple[FloatArray, FloatArray]:
    """What was done before a branch point and after it, each by the node that it started from.

    A(s) = V(s) - V(parent(s)), TreeRL's local advantage (arXiv 2506.11902, Eq. 3), which is VinePPO's (arXiv
    2410.01679) with the branches themselves as the rollouts. Here a tree has a root, the prompt, and a
    branch point b with its leaves: V(leaf) = r; V(b) = mean of its leaves; V(root) = mean of all V(b). So

        before: V(b) - V(root)        after: r - V(b)

    Their sum along a path is r - V(root), GRPO's advantage of the whole episode.

    Args:
        rewards: [n] of one group's leaves.
        trees: [n], equal numbers for leaves behind the same branch point; an episode without one is a tree.
        scale_by_std: divide by the standard deviation of the group's rewards.

    Returns:
        [n] float32 before and [n] float32 after, exactly zero where the values compared differ by rounding
        alone: those of all trees, or those of one tree's leaves.

    Raises:
        ConfigError: for a single tree, which has no baseline.
    """
    values = np.asarray(rewards, dtype=np.float64)
    if scale_by_std:
        values = _sized(values)
    leaves = {tree: values[np.asarray(trees) == tree] for tree in trees}
    if len(leaves) < 2:
        raise ConfigError("a tree needs another one as baseline; lower episodes.branching.num_branches")
    means = {tree: float(of_tree.mean()) for tree, of_tree in leaves.items()}
    level = all_equal(list(means.values()))
    root = float(np.mean(list(means.values())))
    before = np.asarray([0.0 if level else means[tree] - root for tree in trees])
    flat = {tree: all_equal(of_tree) for tree, of_tree in leaves.items()}
    after = np.asarray(
        [0.0 if flat[tree] else value - means[tree] for tree, value in zip(trees, values, strict=True)]
    )
    scale = values.std(ddof=1) if scale_by_std and not all_equal(values) else 1.0
    return (before / scale).astype(np.float32), (after / scale).astype(np.float32)


def _sized(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Exactly scaled by a power of two to below 1: of tiny rewards the squares would vanish."""
    _, exponent = np.frexp(np.abs(values).max())
    sized: npt.NDArray[np.float64] = np.ldexp(values, -exponent)
    return sized
