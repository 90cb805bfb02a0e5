"""The loop of sampler and policy on a toy that can be computed: what an adaptive sampler saves, and why.

A policy has one number for each of two kinds of rows, and solves a row with the probability
σ(skill - difficulty). It learns by GRPO's gradient. Three rows of four are easy; the mean pass rate is to
reach 0.9.
"""

from __future__ import annotations

import numpy as np
import pytest

from vlrl.config.data import SamplerConfig
from vlrl.data.curriculum.choice import AdaptiveSource, RowChoices
from vlrl.data.curriculum.evidence import Evidence
from vlrl.data.curriculum.weighted import RowWeights
from vlrl.data.mixture import Mixture
from vlrl.data.order import FullOrder
from vlrl.rollout.outcome import TicketOutcome
from vlrl.tracking.group_numbers import GroupNumbers, TrajectoryNumbers

NUM_ROWS, BATCH, GROUP_SIZE, RATE = 400, 8, 8, 0.1
POOLS = np.asarray([0, 0, 0, 1] * (NUM_ROWS // 4))


def outcome(row: int, passes: list[bool]) -> TicketOutcome:
    members = tuple(
        TrajectoryNumbers("", float(passed), {}, 1, False, "", None, in_env=False, failed=False)
        for passed in passes
    )
    return TicketOutcome((GroupNumbers(str(row), members, len(passes), False, None),), (), [], row=row)


def num_groups(seed: int, *, adaptive: bool) -> int:
    """Groups generated until the mean pass rate is 0.9."""
    rng = np.random.default_rng(seed)
    difficulty = rng.normal(0.0, 0.5, NUM_ROWS)
    skill = np.asarray([3.0, -1.0])
    evidence = Evidence(NUM_ROWS, half_life=80.0, prior_strength=1.0, pools=POOLS)
    weights = RowWeights(SamplerConfig(name="learnability"), "data.train")
    source = AdaptiveSource(evidence, weights, seed, "total", np.zeros(0, np.int64))
    choices, order = RowChoices([source], Mixture([1.0], seed), BATCH, 1.0), FullOrder(NUM_ROWS, seed)
    for step in range(2000):
        if (1 / (1 + np.exp(difficulty - skill[POOLS]))).mean() >= 0.9:
            return step * BATCH
        gradient = np.zeros(2)
        for position in range(step * BATCH, (step + 1) * BATCH):
            row = choices.choose(position) if adaptive else order.index(position)
            assert row is not None
            rate = 1 / (1 + np.exp(difficulty[row] - skill[POOLS[row]]))
            passes = rng.random(GROUP_SIZE) < rate
            choices.settle(position, row, outcome(row, passes.tolist()))
            if passes.any() and not passes.all():
                advantages = (passes - passes.mean()) / passes.std(ddof=1)
                gradient[POOLS[row]] += (advantages * (passes - rate)).mean()  # ∇ log π of pass and fail
        skill += RATE * gradient
    raise AssertionError("it did not learn")


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_fewer_groups_are_generated_than_uniformly(seed: int) -> None:
    """Hard rows are a quarter of the rows, and most of what is left to learn."""
    uniform, adaptive = num_groups(seed, adaptive=False), num_groups(seed, adaptive=True)
    assert adaptive < 0.8 * uniform, (adaptive, uniform)
