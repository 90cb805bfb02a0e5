"""Law 5: a difference is found, named, and never slips through, not even as nan."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from builders import advantages_of, make_config, make_group, make_sample, no_pixels

from vlrl.batch import Batch
from vlrl.errors import EngineError
from vlrl.run.parity import logprob_difference, require_parity


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


def measure(change: float, num_ranks: int = 1) -> tuple[float, str]:
    groups = [make_group([3, 4], sample=make_sample(id=name), seed=i) for i, name in enumerate("abc")]
    config = make_config(trainer={"num_ranks": num_ranks})
    return logprob_difference(groups, Echo(change), no_pixels, config)  # type: ignore[arg-type]


@pytest.mark.parametrize("num_ranks", [1, 2])
@pytest.mark.parametrize("change", [0.25, -0.25, np.inf])
def test_the_largest_difference_is_found_with_its_sample(change: float, num_ranks: int) -> None:
    difference, sample_id = measure(change, num_ranks)
    assert (difference, sample_id) == (pytest.approx(abs(change)), "b")


def test_agreement_is_zero() -> None:
    assert measure(0.0)[0] == 0.0


def test_a_logprob_that_is_nan_is_the_largest_difference_of_all() -> None:
    difference, sample_id = measure(np.nan)
    assert (difference, sample_id) == (np.inf, "b")
    with pytest.raises(EngineError, match=r"before training: .*'b'.*parity\.tolerance"):
        require_parity(difference, sample_id, make_config(), when="before training")


def test_the_tolerance_follows_the_type_and_the_config() -> None:
    require_parity(0.9e-3, "s", make_config(), when="step 1")
    with pytest.raises(EngineError, match="step 1"):
        require_parity(1.1e-3, "s", make_config(), when="step 1")
    require_parity(1.1e-3, "s", make_config(parity={"tolerance": 0.01}), when="step 1")
    half = make_config()
    half.model.dtype = "bfloat16"
    require_parity(0.4, "s", half, when="step 1")


def test_measuring_leaves_advantages_and_failures_alone() -> None:
    groups = [make_group([3, 4], advantages=[1.0, -1.0], failed=True)]
    logprob_difference(groups, Echo(0.0), no_pixels, make_config())  # type: ignore[arg-type]
    assert advantages_of(groups[0]) == [1.0, -1.0]
    assert groups[0].failed
