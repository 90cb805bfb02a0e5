"""The loss against numbers worked out by hand, and its gradient against finite differences."""

from __future__ import annotations

import math

import pytest
import torch
from builders import make_group, no_pixels
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from vlrl.algorithm.loss import clipped_surrogate, kl_k3, negative_log_likelihood, weighted_sum
from vlrl.packing.options import PackOptions
from vlrl.packing.pack import pack

LOGPROBS = st.floats(-12, 0)
CLIP_LOW, CLIP_HIGH = 0.2, 0.28


def surrogate(trainer: Tensor, sampler: Tensor, advantages: Tensor) -> tuple[Tensor, Tensor]:
    return clipped_surrogate(trainer, sampler, advantages, clip_low=CLIP_LOW, clip_high=CLIP_HIGH)


def test_the_loss_of_a_small_batch_equals_the_sum_done_by_hand() -> None:
    """Two completions of 2 and 1 tokens, GRPO with clipping, KL and sequence averaging.

    Ratios 1.5 (clipped at 1.28 by A = 1), 0.5 (not clipped by A = 1), 0.5 (clipped at 0.8 by A = -1).
    Weights 1/(2·2), 1/(2·2), 1/(2·1).  KL to the reference at ratio r = ref/trainer: r - ln r - 1, β = 0.1.
    """
    sampler = torch.log(torch.tensor([0.2, 0.4, 0.6], dtype=torch.float64))
    trainer = torch.log(torch.tensor([0.3, 0.2, 0.3], dtype=torch.float64))
    reference = torch.log(torch.tensor([0.3, 0.4, 0.15], dtype=torch.float64))
    advantages = torch.tensor([1.0, 1.0, -1.0], dtype=torch.float64)
    weights = torch.tensor([0.25, 0.25, 0.5], dtype=torch.float64)
    per_token, clipped = surrogate(trainer, sampler, advantages)
    loss = weighted_sum(per_token + 0.1 * kl_k3(trainer, reference), weights)
    policy = 0.25 * -1.28 + 0.25 * -0.5 + 0.5 * 0.8
    kl = 0.25 * 0.0 + 0.25 * (2 - math.log(2) - 1) + 0.5 * (0.5 - math.log(0.5) - 1)
    assert clipped.tolist() == [True, False, True]
    assert math.isclose(float(loss), policy + 0.1 * kl, rel_tol=1e-12)


def test_packed_weights_and_advantages_give_the_textbook_grpo_loss() -> None:
    """-1/G Σ_i 1/|o_i| Σ_t min(ρ A, clip(ρ) A), DeepSeekMath Eq. 3, computed with loops."""
    group = make_group([3, 1, 4], advantages=[1.0, -2.0, 0.5])
    batch = pack(
        [group],
        no_pixels,
        PackOptions(
            num_ranks=1,
            max_tokens=100,
            aggregation="sequence",
            max_completion_tokens=8,
            keep_zero_advantage=True,
        ),
    )[0][0]
    generator = torch.Generator().manual_seed(0)
    sampler = torch.tensor(batch.sampler_logprobs, dtype=torch.float64)
    trainer = sampler + 0.5 * torch.randn(len(sampler), generator=generator, dtype=torch.float64)
    per_token, _ = surrogate(trainer, sampler, torch.tensor(batch.advantages, dtype=torch.float64))
    expected, start = 0.0, 0
    for length, advantage in zip([3, 1, 4], [1.0, -2.0, 0.5], strict=True):
        for t in range(start, start + length):
            ratio = math.exp(float(trainer[t] - sampler[t]))
            bounded = min(max(ratio, 1 - CLIP_LOW), 1 + CLIP_HIGH)
            expected -= min(ratio * advantage, bounded * advantage) / length / 3
        start += length
    loss = weighted_sum(per_token, torch.tensor(batch.weights, dtype=torch.float64))
    assert math.isclose(float(loss), expected, rel_tol=1e-6)  # the weights are float32


def test_the_gradient_agrees_with_finite_differences() -> None:
    """Ratios are on both sides of both bounds and advantages of both signs, KL included."""
    ratios = torch.tensor([0.5, 0.9, 1.1, 1.6], dtype=torch.float64).repeat(2)
    advantages = torch.tensor([1.3] * 4 + [-0.7] * 4, dtype=torch.float64)
    sampler = torch.linspace(-3, -0.5, 8, dtype=torch.float64)
    trainer = (sampler + ratios.log()).requires_grad_()
    reference = sampler + 0.2
    weights = torch.linspace(0.05, 0.2, 8, dtype=torch.float64)

    def loss(logprobs: Tensor) -> Tensor:
        per_token, _ = surrogate(logprobs, sampler, advantages)
        return weighted_sum(per_token + 0.3 * kl_k3(logprobs, reference), weights)

    assert torch.autograd.gradcheck(loss, (trainer,), eps=1e-7, atol=1e-7)


@pytest.mark.parametrize(
    ("ratio", "advantage", "is_clipped"),
    [
        (1.5, 1.0, True),  # good and already likelier: stop pushing up
        (1.5, -1.0, False),  # bad and likelier: push down
        (0.5, 1.0, False),  # good and less likely: push up
        (0.5, -1.0, True),  # bad and already less likely: stop pushing down
        (1.27, 1.0, False),  # inside the upper bound, which is wider than the lower
        (0.79, -1.0, True),
    ],
)
def test_each_side_is_clipped_only_when_the_step_would_go_further_out(
    ratio: float, advantage: float, is_clipped: bool
) -> None:
    trainer = torch.tensor([math.log(ratio)], dtype=torch.float64, requires_grad=True)
    loss, clipped = surrogate(trainer, torch.zeros(1), torch.tensor([advantage]))
    loss.sum().backward()
    assert clipped.item() is is_clipped
    assert trainer.grad is not None
    expected = 0.0 if is_clipped else -ratio * advantage
    assert math.isclose(trainer.grad.item(), expected, rel_tol=1e-9, abs_tol=1e-12)


@pytest.mark.parametrize(
    ("ratio", "advantage", "gradient", "loss", "is_clipped"),
    [
        (2.9, -0.5, 1.45, 1.45, False),  # bad and likelier, but not too far: push down
        (3.1, -0.5, 0.0, 1.5, True),  # beyond c = 3 the loss is -c · A
        (math.exp(500), -0.5, 0.0, 1.5, True),  # beyond float32
        (3.1, 0.5, 0.0, -0.64, True),  # PPO's own bound
        (math.exp(500), 0.5, 0.0, -0.64, True),
        (math.exp(-500), 0.5, 0.0, 0.0, False),
        (math.exp(-500), -0.5, 0.0, 0.4, True),
        (3.1, 0.0, 0.0, 0.0, False),
    ],
)
def test_dual_clip_bounds_what_a_bad_token_can_weigh(
    ratio: float, advantage: float, gradient: float, loss: float, is_clipped: bool
) -> None:
    """Ye et al., arXiv 1912.09729, Eq. 5: max(min(ρA, clip(ρ)A), cA) for A < 0; finite at any ratio."""
    trainer = torch.tensor([math.log(ratio)], requires_grad=True)
    found, clipped = clipped_surrogate(
        trainer, torch.zeros(1), torch.tensor([advantage]), clip_low=0.2, clip_high=0.28, dual_clip=3.0
    )
    found.sum().backward()
    assert trainer.grad is not None
    assert trainer.grad.item() == pytest.approx(gradient, rel=1e-5)
    assert found.item() == pytest.approx(loss, rel=1e-5, abs=1e-7)
    assert clipped.item() is is_clipped


def test_without_a_dual_clip_a_bad_token_weighs_its_ratio() -> None:
    trainer = torch.tensor([math.log(50.0)], requires_grad=True)
    surrogate(trainer, torch.zeros(1), torch.tensor([-1.0]))[0].sum().backward()
    assert trainer.grad is not None
    assert trainer.grad.item() == pytest.approx(50.0)


def test_on_policy_the_gradient_is_reinforce() -> None:
    trainer = torch.tensor([-1.0, -2.0], requires_grad=True)
    advantages = torch.tensor([2.0, -3.0])
    loss, clipped = surrogate(trainer, trainer.detach().clone(), advantages)
    loss.sum().backward()
    assert trainer.grad is not None
    assert torch.equal(trainer.grad, -advantages)
    assert not clipped.any()


@given(LOGPROBS, LOGPROBS)
def test_kl_k3_is_its_closed_form_and_never_negative(trainer: float, reference: float) -> None:
    double = torch.tensor([trainer, reference], dtype=torch.float64)
    value, delta = float(kl_k3(double[0], double[1])), reference - trainer
    assert value >= 0.0
    assert math.isclose(value, math.exp(delta) - delta - 1, rel_tol=1e-9, abs_tol=1e-12)
    single = torch.tensor([trainer, trainer + 1e-4 * reference])  # float32, nearly on policy
    assert kl_k3(single[0], single[1]) >= 0.0


def test_kl_k3_averages_to_the_kl_divergence() -> None:
    p = torch.tensor([0.5, 0.3, 0.2], dtype=torch.float64)
    q = torch.tensor([0.2, 0.2, 0.6], dtype=torch.float64)
    estimate = (p * kl_k3(p.log(), q.log())).sum()
    assert torch.isclose(estimate, (p * (p / q).log()).sum())
    assert kl_k3(p.log(), p.log()).eq(0).all()


def test_supervised_loss_is_the_negative_logprob() -> None:
    assert negative_log_likelihood(torch.tensor([-0.5, -2.0])).tolist() == [0.5, 2.0]
