"""What the driver logs of KL and entropy terms, from what its ranks report."""

from __future__ import annotations

import pytest
from builders import make_config, make_group, no_pixels

from vlrl.algorithm.differences import LogprobDifferences
from vlrl.packing.options import PackOptions
from vlrl.packing.pack import pack
from vlrl.tracking.metrics import METRICS
from vlrl.trainer import driver
from vlrl.trainer.driver import Trainer
from vlrl.trainer.result import RankStepResult, StepSums


def test_coefficients_and_shares_of_all_ranks_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    coefficients = {"policy/kl_coef": 0.2, "policy/entropy_coef": 0.01}
    results = [
        RankStepResult(
            StepSums(num_tokens=30, num_selected=6, kl_reference=3.0), 1.5, LogprobDifferences(), coefficients
        ),
        RankStepResult(
            StepSums(num_tokens=10, num_selected=2, kl_reference=5.0), 1.5, LogprobDifferences(), coefficients
        ),
    ]
    monkeypatch.setattr(driver.cluster, "begin_with", lambda *_: results)
    monkeypatch.setattr(driver.cluster, "fetch_all", lambda begun: begun)
    trainer = Trainer.__new__(Trainer)
    trainer._config = make_config(algorithm={"kl_coef": 0.1, "selections": "top_entropy"})
    trainer._ranks, trainer._written, trainer._values = [object(), object()], True, []
    group = make_group([2, 3], advantages=[1.0, -1.0])
    batch = pack([group], no_pixels, PackOptions(num_ranks=2, max_tokens=64, max_completion_tokens=8))
    metrics, _ = trainer.step(batch, "grpo", 1e-4)
    assert metrics.items() >= coefficients.items()
    assert metrics["policy/unselected_fraction"] == pytest.approx(0.8)
    assert metrics["policy/kl_reference"] == pytest.approx(0.2)
    assert metrics.keys() <= METRICS.keys()
