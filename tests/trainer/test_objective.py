"""A teacher in what a rank minimises: beside rewards, under every correction, not in supervised training."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest
import torch
from builders import make_config, make_group, no_pixels
from torch import Tensor

from vlrl.algorithm.off_policy import corrected_surrogate, sequence_sums
from vlrl.config.algorithm import AlgorithmConfig
from vlrl.model.logprobs import DeviceBatch
from vlrl.packing.options import PackOptions
from vlrl.packing.pack import pack
from vlrl.trainer.objective import Terms, token_losses
from vlrl.trainer.result import StepSums

M = 6
TEACHER = {"path": "teacher", "coef": 0.5}


def batch(advantages: float) -> DeviceBatch:
    """M tokens of two sequences, one update old."""
    generator = torch.Generator().manual_seed(1)
    arrays: dict[str, Any] = {field.name: None for field in fields(DeviceBatch)}
    arrays |= {
        "sampler_logprobs": -1 - torch.rand(M, generator=generator),
        "advantages": torch.full((M,), advantages),
        "weights": torch.full((M,), 1 / M),
        "token_staleness": torch.ones(M, dtype=torch.int64),
        "sequence_ids": torch.tensor([0, 0, 0, 1, 1, 1]),
    }
    return DeviceBatch(**arrays)


def logprobs(seed: int) -> Tensor:
    return -1 - torch.rand(M, generator=torch.Generator().manual_seed(seed))


def losses(
    algorithm: AlgorithmConfig, given: DeviceBatch, teacher: Tensor | None, objective: Any = "grpo"
) -> tuple[Tensor, Tensor, StepSums]:
    """Loss of each token, its gradient by that token's log-probability, and the sums."""
    own = logprobs(2).requires_grad_()
    terms = Terms(advantages=given.advantages, entropy_coef=algorithm.entropy_coef, teacher_logprobs=teacher)
    per_token, sums = token_losses(given, own, torch.zeros(M), terms, objective, algorithm, sequence_sums)
    (gradient,) = torch.autograd.grad(per_token.sum(), own)
    return per_token.detach(), gradient, sums


def test_a_teacher_alone_by_hand() -> None:
    """A token's gradient, without clipping, is ratio · coef · (log π - log π_T)."""
    algorithm = AlgorithmConfig(teacher=TEACHER, clip_low=0.99, clip_high=99, dual_clip=None)
    given, own, teacher = batch(0.0), logprobs(2), logprobs(3)
    per_token, gradient, sums = losses(algorithm, given, teacher)
    ratio, gap = (own - given.sampler_logprobs).exp(), own - teacher
    assert torch.allclose(per_token, 0.5 * ratio * gap, atol=1e-6)
    assert torch.allclose(gradient, 0.5 * ratio * gap, atol=1e-6)
    assert sums.reverse_kl == pytest.approx(float(gap.sum()), rel=1e-5)


@pytest.mark.parametrize(
    "keys",
    [
        {},
        {"loss": "gspo"},
        {"loss": "gmpo"},
        {"loss": "cispo"},
        {"loss": "sapo"},
        {"loss": "policy_gradient"},
        *({"correction": {"kind": kind}} for kind in ("truncated", "masked", "icepop", "decoupled", "dppo")),
        {"correction": {"kind": "decoupled", "proximal": "interpolated"}},
    ],
)
def test_beside_rewards_its_advantages_are_added(keys: dict[str, Any]) -> None:
    """Every loss and correction sees the sum, and only that."""
    algorithm = AlgorithmConfig.model_validate({"teacher": TEACHER, **keys})
    given, own, teacher = batch(0.7), logprobs(2), logprobs(3)
    mixed = replace(given, advantages=given.advantages + 0.5 * (teacher - own))
    per_token, gradient, _ = losses(algorithm, given, teacher)
    own.requires_grad_()
    expected = corrected_surrogate(own, mixed, algorithm, sequence_sums).loss
    (expected_gradient,) = torch.autograd.grad(expected.sum(), own)
    assert torch.equal(per_token, expected.detach())
    assert torch.equal(gradient, expected_gradient)
    assert torch.equal(given.advantages, torch.full((M,), 0.7))  # the batch is left alone


def test_a_teacher_that_agrees_changes_nothing() -> None:
    given = batch(0.7)
    with_one, without = (
        losses(AlgorithmConfig(teacher=teacher), given, logprobs(2) if teacher else None)
        for teacher in (TEACHER, None)
    )
    assert torch.equal(with_one[0], without[0]) and torch.equal(with_one[1], without[1])
    assert with_one[2].reverse_kl == without[2].reverse_kl == 0.0


def test_supervised_training_asks_no_teacher() -> None:
    _, gradient, sums = losses(AlgorithmConfig(teacher=TEACHER), batch(0.0), None, objective="sft")
    assert gradient.tolist() == [-1.0] * M and sums.reverse_kl == 0


def test_groups_without_reward_variance_are_trained_if_there_is_a_teacher() -> None:
    group = make_group([3, 2], advantages=[0.0, 0.0])
    counts = []
    for teacher in (None, TEACHER):
        config = make_config(algorithm={"teacher": teacher})
        [[micro_batch]] = pack([group], no_pixels, PackOptions.of(config, config.algorithm))
        counts.append(len(micro_batch.target_ids))
    assert counts == [0, 5]
