"""The loss with each of its terms: values by hand, and gradients against difference quotients."""

from __future__ import annotations

import math
from dataclasses import fields
from typing import Any

import pytest
import torch
from torch import Tensor

from vlrl.algorithm.off_policy import sequence_sums
from vlrl.config.algorithm import AlgorithmConfig
from vlrl.model.logprobs import DeviceBatch
from vlrl.trainer.objective import Terms, token_losses

COUNT, STEP = 12, 1e-6


def batch() -> DeviceBatch:
    noise = torch.randn(2, COUNT, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    arrays: dict[str, Any] = {field.name: None for field in fields(DeviceBatch)}
    arrays |= {
        "sampler_logprobs": -1 - noise[0].abs(),
        "advantages": noise[1],
        "token_staleness": torch.zeros(COUNT, dtype=torch.int64),
        "sequence_ids": torch.arange(COUNT) // 4,
    }
    return DeviceBatch(**arrays)


def losses(
    trainer: Tensor, terms: Terms, keys: dict[str, Any], entropy: Tensor | None = None
) -> tuple[Tensor, Any]:
    algorithm = AlgorithmConfig.model_validate(keys)
    entropies = torch.ones_like(trainer) if entropy is None else entropy
    return token_losses(batch(), trainer, entropies, terms, "grpo", algorithm, sequence_sums)


def trainer_logprobs() -> Tensor:
    return batch().sampler_logprobs + 0.1 * torch.sin(torch.arange(COUNT, dtype=torch.float64))


def terms(**given: Any) -> Terms:
    return Terms(**{"advantages": batch().advantages, **given})


CASES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "kl in the loss": ({"kl_coef": 0.1}, {"reference_logprobs": trainer_logprobs() - 0.4, "kl_coef": 0.3}),
    "unbiased k3": (
        {"kl_coef": 0.1, "kl_estimator": "k3_unbiased"},
        {"reference_logprobs": trainer_logprobs() - 0.4, "kl_coef": 0.3},
    ),
    "held tokens": (
        {},
        {"factors": torch.ones(COUNT).double(), "penalties": (torch.arange(COUNT) % 3).double()},
    ),
    "tokens left out": (
        {},
        {"factors": (torch.arange(COUNT) % 2).double(), "penalties": torch.zeros(COUNT).double()},
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_gradients_are_those_of_difference_quotients(case: str) -> None:
    keys, given = CASES[case]
    trainer = trainer_logprobs().requires_grad_()
    (found,) = torch.autograd.grad(losses(trainer, terms(**given), keys)[0].sum(), trainer)
    for i in range(COUNT):
        ends = []
        for shift in (STEP, -STEP):
            shifted = trainer_logprobs()
            shifted[i] += shift
            ends.append(float(losses(shifted, terms(**given), keys)[0].sum()))
        assert (ends[0] - ends[1]) / (2 * STEP) == pytest.approx(float(found[i]), abs=1e-6)


def test_a_token_left_out_has_no_gradient_and_one_held_has_its_penalty() -> None:
    trainer = trainer_logprobs()
    plain, _ = losses(trainer, terms(), {})
    factors = (torch.arange(COUNT) < 6).double()
    penalties = 2.0 * (torch.arange(COUNT) == 7)
    found, sums = losses(trainer, terms(factors=factors, penalties=penalties.double()), {})
    assert torch.equal(found[:6], plain[:6]) and not found[8:].any() and found[6] == 0
    away = float(trainer[7] - batch().sampler_logprobs[7])
    assert float(found[7]) == pytest.approx(2 * (math.expm1(away) - away))
    assert sums.num_selected == 6


def test_a_penalty_of_a_token_far_away_is_finite() -> None:
    trainer = (batch().sampler_logprobs + 300).requires_grad_()
    zeros = torch.zeros(COUNT).double()
    given = terms(factors=zeros, penalties=zeros)
    value = losses(trainer, given, {})[0].sum()
    (found,) = torch.autograd.grad(value, trainer)
    assert torch.isfinite(value) and torch.equal(found, zeros)


@pytest.mark.parametrize("away", [-300.0, -1.0, 1.0, 300.0])
def test_a_held_token_is_never_pushed_further_away(away: float) -> None:
    trainer = (batch().sampler_logprobs + away).requires_grad_()
    given = terms(factors=torch.zeros(COUNT).double(), penalties=torch.ones(COUNT).double())
    (found,) = torch.autograd.grad(losses(trainer, given, {})[0].sum(), trainer)
    assert (found * away >= 0).all()


def test_kl_in_the_reward_is_no_penalty_and_still_measured() -> None:
    trainer, reference = trainer_logprobs(), trainer_logprobs() - 0.4
    keys = {"kl_coef": 0.1, "kl_in": "reward"}
    plain, _ = losses(trainer, terms(), {})
    found, sums = losses(trainer, terms(reference_logprobs=reference, kl_coef=0.1), keys)
    assert torch.equal(found, plain) and sums.kl_reference > 0


def test_the_coefficients_are_those_of_the_update() -> None:
    trainer = trainer_logprobs()
    plain, _ = losses(trainer, terms(), {"entropy_coef": 0.5})
    found, _ = losses(trainer, terms(entropy_coef=0.25), {"entropy_coef": 0.5})
    assert torch.allclose(plain - found, torch.full_like(found, 0.25))
