"""A step without a trained token: no rank hears of it, so nothing moves."""

from __future__ import annotations

from builders import make_config, make_group, no_pixels

from vlrl.algorithm.credit import assign_credit
from vlrl.config.algorithm import AlgorithmConfig
from vlrl.packing.options import PackOptions
from vlrl.packing.pack import pack
from vlrl.tracking.metrics import METRICS
from vlrl.trainer.driver import Trainer


class NoRank:
    """Whatever it is asked for, it fails."""


def test_a_step_without_trained_tokens_asks_no_rank_and_is_counted() -> None:
    equal = make_group([2, 3])
    for trajectory in equal.trajectories:
        trajectory.score = equal.trajectories[0].score
    assign_credit([equal], AlgorithmConfig())
    batch = pack(
        [equal],
        no_pixels,
        PackOptions(
            num_ranks=2,
            max_tokens=64,
            aggregation="token",
            max_completion_tokens=8,
            keep_zero_advantage=False,
        ),
    )
    assert all(not len(m.target_ids) for of_rank in batch for m in of_rank)
    trainer = Trainer.__new__(Trainer)
    trainer._config, trainer._ranks, trainer._written = make_config(), [NoRank(), NoRank()], True
    metrics, differences = trainer.step(batch, "grpo", 1e-4)
    assert differences.num_tokens == 0
    assert metrics["optim/empty_fraction"] == 1.0
    assert metrics["optim/grad_norm"] == metrics["policy/loss"] == 0.0
    assert metrics.keys() <= METRICS.keys()
    assert trainer._written  # what was written last still is the weights
