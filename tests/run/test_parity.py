"""Law 5: a difference is found, named, and never slips through, not even as nan."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from builders import advantages_of, make_config, make_group, make_sample, no_pixels

from vlrl.algorithm.differences import LogprobDifferences
from vlrl.batch import Batch
from vlrl.config import Config
from vlrl.errors import EngineError
from vlrl.run.parity import logprob_differences, parity_metrics, require_parity


class Echo:
    """A trainer that agrees with the sampler but for `change` on the second token of sample "b"."""

    def __init__(self, change: float) -> None:
        self.change = change

    def logprobs(self, batch: Batch) -> list[list[Any]]:
        def one(m: Any) -> Any:
            values = m.sampler_logprobs.copy()
            mine = [i for i, row in enumerate(m.sequence_ids) if m.token_sample_ids[row] == "b"]
            if mine:
                values[mine[1]] += self.change
            return values

        return [[one(m) for m in rank] for rank in batch]


def measure(change: float, num_ranks: int = 1) -> LogprobDifferences:
    groups = [make_group([3, 4], sample=make_sample(id=name), seed=i) for i, name in enumerate("abc")]
    config = make_config(trainer={"num_ranks": num_ranks})
    return logprob_differences(groups, Echo(change), no_pixels, config)  # type: ignore[arg-type]


def noise(values: Any) -> LogprobDifferences:
    return LogprobDifferences.of(np.asarray(values), np.zeros(len(values)), ["s"], np.zeros(len(values), int))


def of_type(dtype: Any, **parity: Any) -> Config:
    config = make_config(parity=parity)
    config.model.dtype = dtype
    return config


@pytest.mark.parametrize("num_ranks", [1, 2])
@pytest.mark.parametrize("change", [0.25, -0.25, np.inf])
def test_the_largest_difference_is_found_with_its_sample(change: float, num_ranks: int) -> None:
    differences = measure(change, num_ranks)
    assert (differences.largest, differences.sample_id) == (pytest.approx(abs(change)), "b")
    assert differences.num_tokens == 21


def test_agreement_is_zero() -> None:
    assert parity_metrics(measure(0.0)) == dict.fromkeys(parity_metrics(measure(0.5)), 0.0)
    assert parity_metrics(LogprobDifferences()) == {}


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_logprob_that_is_nan_is_the_largest_difference_of_all(dtype: Any) -> None:
    differences = measure(np.nan)
    assert (differences.largest, differences.sample_id) == (np.inf, "b")
    with pytest.raises(EngineError, match=r"before training: .*'b'"):
        require_parity(differences, of_type(dtype), when="before training")


def test_float32_bounds_every_token() -> None:
    require_parity(noise([0.9e-3]), make_config(), when="step 1")
    with pytest.raises(EngineError, match=r"step 1: .*largest difference is 1.10e-03.*parity\.tolerance"):
        require_parity(noise([0.0] * 30_000 + [1.1e-3]), make_config(), when="step 1")
    require_parity(noise([1.1e-3]), of_type("float32", tolerance=0.01), when="step 1")


def test_bfloat16_bounds_the_mean_and_all_but_a_thousandth() -> None:
    """Rounding has a tail: a token in 30,000 that is off by nats ends no run, a fault in every token does."""
    rng = np.random.default_rng(0)
    rounding = 0.01 * rng.standard_t(2.5, 30_000)
    rounding[7] = 5.0
    require_parity(noise(rounding), of_type("bfloat16"), when="step 1")
    with pytest.raises(EngineError, match=r"99.9% quantile of the differences is"):
        require_parity(noise([*rounding, *[1.0] * 60]), of_type("bfloat16"), when="step 1")
    with pytest.raises(EngineError, match="mean difference is"):
        require_parity(noise(rounding + 0.1), of_type("bfloat16"), when="step 1")
    require_parity(noise(rounding + 0.1), of_type("bfloat16", tolerance=2.0), when="step 1")


def test_of_few_tokens_one_alone_decides_nothing_in_bfloat16() -> None:
    require_parity(noise([0.0] * 99 + [3.0]), of_type("bfloat16"), when="step 1")
    with pytest.raises(EngineError):
        require_parity(noise([0.0] * 98 + [3.0] * 2), of_type("bfloat16"), when="step 1")


def test_measuring_leaves_advantages_and_failures_alone() -> None:
    groups = [make_group([3, 4], advantages=[1.0, -1.0], failed=True)]
    logprob_differences(groups, Echo(0.0), no_pixels, make_config())  # type: ignore[arg-type]
    assert advantages_of(groups[0]) == [1.0, -1.0]
    assert groups[0].failed
