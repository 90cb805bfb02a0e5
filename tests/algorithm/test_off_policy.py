"""Off-policy corrections against numbers worked out by hand, and against the textbook importance sampling."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from builders import make_generation, make_group, make_sample, no_pixels
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from torch import Tensor

from vlrl.algorithm.credit import group_with_advantages
from vlrl.algorithm.loss import clipped_surrogate
from vlrl.algorithm.off_policy import Surrogate, corrected_surrogate, interpolated_logprobs, sequence_sums
from vlrl.algorithm.staleness import COLUMNS, NUM_ROWS, staleness_metrics, staleness_sums
from vlrl.config.algorithm import AlgorithmConfig
from vlrl.config.asynchronous import CorrectionConfig
from vlrl.packing.options import PackOptions
from vlrl.packing.pack import pack
from vlrl.rollout.outcome import oldest_version
from vlrl.rollout.session import Session
from vlrl.tracking.metrics import METRICS, describe
from vlrl.types import Score, VersionSpan

INF = float("inf")


@dataclass
class Tokens:
    """What is known of the trained tokens, in float64."""

    sampler_logprobs: Tensor
    advantages: Tensor
    token_staleness: Tensor
    sequence_ids: Tensor
    proximal_logprobs: Tensor | None = None


def tokens(
    sampler: list[float],
    advantages: list[float],
    *,
    lags: list[int] | None = None,
    sequences: list[int] | None = None,
    proximal: list[float] | None = None,
) -> Tokens:
    """Probabilities in, logprobs out."""
    return Tokens(
        torch.tensor(sampler, dtype=torch.float64).log(),
        torch.tensor(advantages, dtype=torch.float64),
        torch.tensor(lags or [0] * len(sampler)),
        torch.tensor(sequences or [0] * len(sampler)),
        None if proximal is None else torch.tensor(proximal, dtype=torch.float64).log(),
    )


def options(**correction: Any) -> AlgorithmConfig:
    return AlgorithmConfig(clip_low=0.2, clip_high=0.28, correction=CorrectionConfig(**correction))


def run(trainer: list[float], generated: Tokens, **correction: Any) -> tuple[Surrogate, list[float]]:
    """The surrogate at these probabilities, and the gradient by the log-probabilities."""
    logprobs = torch.tensor(trainer, dtype=torch.float64).log().requires_grad_()
    surrogate = corrected_surrogate(logprobs, generated, options(**correction))
    surrogate.loss.sum().backward()
    assert logprobs.grad is not None
    return surrogate, logprobs.grad.tolist()


def test_without_correction_it_is_ppo_around_the_sampler_to_the_last_bit() -> None:
    generator = torch.Generator().manual_seed(0)
    sampler = -3 * torch.rand(64, generator=generator)
    trainer = sampler + 0.5 * torch.randn(64, generator=generator)
    advantages = torch.randn(64, generator=generator)
    generated = Tokens(
        sampler, advantages, torch.zeros(64, dtype=torch.int64), torch.zeros(64, dtype=torch.int64)
    )
    found = corrected_surrogate(trainer, generated, options())
    expected, clipped = clipped_surrogate(
        trainer, sampler, advantages, clip_low=0.2, clip_high=0.28, dual_clip=3.0
    )
    assert torch.equal(found.loss, expected) and torch.equal(found.stopped, clipped)
    assert not found.limited.any()


def test_decoupled_ppo_weights_by_the_proximal_policy_and_clips_around_it() -> None:
    """π_b 0.2, π_p 0.4: weight 2. π_θ 0.5: ratio to π_p 1.25, inside 1.28; to π_b 2.5, far outside."""
    generated = tokens([0.2, 0.2, 0.2], [1.0, 1.0, -3.0], proximal=[0.4, 0.4, 0.4])
    surrogate, gradient = run([0.5, 0.6, 0.2], generated, kind="decoupled")
    assert surrogate.loss.tolist() == pytest.approx([-2 * 1.25, -2 * 1.28, 3 * 2 * 0.8])
    assert surrogate.stopped.tolist() == [False, True, True]
    assert gradient == pytest.approx([-2.5, 0.0, 0.0])


def test_in_a_steps_first_update_the_weight_is_the_whole_ratio_and_nothing_is_clipped() -> None:
    """π_p is π_θ before the step: the gradient is the importance-weighted policy gradient, -π_θ/π_b · A."""
    surrogate, gradient = run([0.6, 0.1], tokens([0.2, 0.4], [1.0, -2.0]), kind="decoupled")
    assert gradient == pytest.approx([-3.0, 0.5])
    assert not surrogate.stopped.any()


def test_the_expectation_under_the_sampler_is_the_gradient_under_the_trainer() -> None:
    """Σ_a π_b(a) · w(a) · A(a) ∇log π_θ(a) = Σ_a π_θ(a) A(a) ∇log π_θ(a): importance sampling is unbiased."""
    behaviour = torch.tensor([0.5, 0.3, 0.2], dtype=torch.float64)
    logits = torch.tensor([0.1, -0.4, 0.8], dtype=torch.float64, requires_grad=True)
    advantages = torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64)
    generated = tokens(behaviour.tolist(), advantages.tolist())
    trainer = torch.log_softmax(logits, 0)
    (behaviour * corrected_surrogate(trainer, generated, options(kind="decoupled")).loss).sum().backward()
    found = logits.grad
    assert found is not None
    logits.grad = None
    (-(torch.softmax(logits, 0) * advantages)).sum().backward()
    assert logits.grad is not None and torch.allclose(found, logits.grad)


def test_uncorrected_is_the_surrogate_around_the_proximal_policy_whoever_drew_the_token() -> None:
    """π_p 0.4, π_θ 0.5: ratio 1.25, and it was generated with 0.1 or with 0.9."""
    generated = tokens([0.1, 0.9, 0.1], [1.0, 1.0, -1.0], proximal=[0.4, 0.4, 0.4])
    surrogate, gradient = run([0.5, 0.5, 0.2], generated, kind="uncorrected")
    assert surrogate.loss.tolist() == pytest.approx([-1.25, -1.25, 0.8])
    assert gradient == pytest.approx([-1.25, -1.25, 0.0])
    assert not surrogate.limited.any()


def test_truncated_importance_sampling_caps_the_weight() -> None:
    surrogate, gradient = run([0.6, 0.3], tokens([0.1, 0.2], [1.0, 1.0]), kind="truncated", cap=2.0)
    assert gradient == pytest.approx([-2.0, -1.5])
    assert surrogate.limited.tolist() == [True, False]


def test_masked_importance_sampling_leaves_tokens_out_above_the_cap_only() -> None:
    generated = tokens([0.1, 0.2, 0.8], [1.0, 1.0, 1.0])
    surrogate, gradient = run([0.6, 0.4, 0.08], generated, kind="masked", cap=2.0)
    assert gradient == pytest.approx([0.0, -2.0, -0.1])
    assert surrogate.limited.tolist() == [True, False, False]


def test_icepop_leaves_tokens_out_on_both_sides_and_weights_the_others() -> None:
    generated = tokens([0.1, 0.1, 0.4, 0.5], [1.0, 1.0, 1.0, 1.0])
    surrogate, gradient = run([0.6, 0.5, 0.2, 0.2], generated, kind="icepop", icepop_low=0.5, icepop_high=5.0)
    assert gradient == pytest.approx([0.0, -5.0, -0.5, 0.0])  # ρ: 6, 5, 0.5, 0.4
    assert surrogate.limited.tolist() == [True, False, False, True]


def test_a_sequence_has_one_weight_the_product_of_its_tokens() -> None:
    """Sequence 0: 2 · 3 = 6; sequence 1: 0.5."""
    generated = tokens([0.2, 0.4, 0.2], [1.0, 1.0, 1.0], sequences=[0, 1, 0])
    trainer = [0.4, 0.2, 0.6]
    _, truncated = run(trainer, generated, kind="truncated", level="sequence", cap=4.0)
    assert truncated == pytest.approx([-4.0, -0.5, -4.0])
    surrogate, masked = run(trainer, generated, kind="masked", level="sequence", cap=4.0)
    assert masked == pytest.approx([0.0, -0.5, 0.0])
    assert surrogate.limited.tolist() == [True, False, True]
    _, whole = run(trainer, generated, kind="masked", level="sequence", cap=6.1)
    assert whole == pytest.approx([-6.0, -0.5, -6.0])


def test_a_ratio_beyond_all_numbers_is_masked_to_zero_not_to_nan() -> None:
    count = 2000
    generated = tokens([0.01] * count, [1.0] * count)
    _, gradient = run([0.99] * count, generated, kind="masked", level="sequence")
    assert gradient == [0.0] * count
    _, capped = run([0.99] * count, generated, kind="truncated", level="sequence")
    assert capped == pytest.approx([-2.0] * count)


def test_sequence_sums_of_nothing_and_of_several() -> None:
    assert sequence_sums(torch.zeros(0), torch.zeros(0, dtype=torch.int64)).shape == (0,)
    assert sequence_sums(torch.tensor([1.0, 2.0, 4.0]), torch.tensor([1, 0, 1])).tolist() == [5.0, 2.0, 5.0]


@pytest.mark.parametrize(
    ("sampler", "trainer", "advantage", "is_masked"),
    [
        (0.5, 0.75, 1.0, True),  # good and up by more than 0.2
        (0.5, 0.75, -1.0, False),  # bad and up: bring it back
        (0.5, 0.25, -1.0, True),
        (0.5, 0.25, 1.0, False),
        (0.5, 0.69, 1.0, False),
        (0.001, 0.1, 1.0, False),  # a hundred times likelier, which PPO would clip, and still rare
        (0.99, 0.75, -1.0, True),  # a ratio of 0.76 that PPO's bounds of 0.2 would let go a little further
    ],
)
def test_dppo_masks_by_probability_moved_in_the_advantages_direction(
    sampler: float, trainer: float, advantage: float, is_masked: bool
) -> None:
    surrogate, gradient = run([trainer], tokens([sampler], [advantage]), kind="dppo", dppo_threshold=0.2)
    assert surrogate.stopped.tolist() == [is_masked]
    weight = min(trainer / sampler, 20.0)
    assert gradient == pytest.approx([0.0 if is_masked else -weight * advantage])


@settings(deadline=None)
@given(st.floats(-6, 0), st.floats(-6, 0), st.integers(0, 12))
def test_the_interpolated_proximal_is_one_update_behind(trainer: float, sampler: float, lag: int) -> None:
    """If every update had moved log π alike, the policy of age 1 would be (d - 1)/d of the way from π_b."""
    found = interpolated_logprobs(
        torch.tensor([trainer], dtype=torch.float64), torch.tensor([sampler]).double(), torch.tensor([lag])
    )
    way = 0.0 if lag == 0 else (lag - 1) / lag
    assert math.isclose(float(found), sampler + way * (trainer - sampler), rel_tol=1e-6, abs_tol=1e-6)


def test_the_interpolated_proximal_is_used_and_gives_no_gradient() -> None:
    """Lag 2: π_p = √(0.2 · 0.45) = 0.3, weight 1.5, ratio 1.5, clipped at 1.28 when A > 0."""
    generated = tokens([0.2, 0.2], [1.0, -1.0], lags=[2, 2])
    surrogate, gradient = run([0.45, 0.45], generated, kind="decoupled", proximal="interpolated")
    assert surrogate.loss.tolist() == pytest.approx([-1.5 * 1.28, 1.5 * 1.5])
    assert gradient == pytest.approx([0.0, 2.25])


FAR = {
    # kind: gradient for A = -1 and for A = +1 of a token with log π_b = -14 and log π_θ = -5, ρ = e^9 = 8103
    "none": (0.0, 0.0),  # dual clip, PPO's clip
    "uncorrected": (1.0, -1.0),  # π_p is π_θ
    "truncated": (2.0, -2.0),
    "decoupled": (20.0, -20.0),
    "masked": (0.0, 0.0),
    "icepop": (0.0, 0.0),
    "dppo": (20.0, -20.0),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("kind", FAR)
def test_no_token_weighs_more_than_its_bound_however_far_the_policy_has_moved(
    kind: str, dtype: torch.dtype
) -> None:
    for log_ratio in (9.0, 200.0):  # e^200 is beyond float32
        generated = Tokens(
            torch.tensor([-5.0 - log_ratio] * 2, dtype=dtype),
            torch.tensor([-1.0, 1.0], dtype=dtype),
            torch.tensor([0, 0]),
            torch.tensor([0, 1]),
        )
        logprobs = torch.tensor([-5.0] * 2, dtype=dtype, requires_grad=True)
        surrogate = corrected_surrogate(logprobs, generated, options(kind=kind))
        surrogate.loss.sum().backward()
        assert logprobs.grad is not None
        assert logprobs.grad.tolist() == pytest.approx(FAR[kind])
        assert torch.isfinite(surrogate.loss).all()
        if kind in ("decoupled", "dppo", "truncated"):
            assert surrogate.limited.all()


@pytest.mark.parametrize(("lag", "gradient"), [(1, 0.0), (4, 0.0), (12, 20 * math.exp(0.75))])
def test_the_interpolated_proximal_is_bounded_on_both_of_its_sides(lag: int, gradient: float) -> None:
    """π_θ / π_p = e^(9/d) is dual-clipped at 3, π_p / π_b = e^(9 - 9/d) capped at 20."""
    generated = tokens([math.exp(-14)], [-1.0], lags=[lag])
    _, found = run([math.exp(-5)], generated, kind="decoupled", proximal="interpolated")
    assert found == pytest.approx([gradient])


def test_a_cap_of_ones_own_is_read_by_every_kind_that_has_one() -> None:
    for kind in ("decoupled", "dppo", "truncated"):
        _, gradient = run(
            [0.6],
            tokens([0.1], [-1.0]),
            kind=kind,
            cap=4.0,
        )
        assert gradient == pytest.approx([4.0])
        _, free = run([0.6], tokens([0.1], [-1.0]), kind=kind, cap=INF)
        assert free == pytest.approx([6.0])
    for kind in ("none", "icepop", "uncorrected"):
        with pytest.raises(ValidationError, match=r"cap=4\.0 has no effect"):
            CorrectionConfig(kind=kind, cap=4.0)  # type: ignore[arg-type]


@settings(deadline=None)
@given(st.floats(-30, 30), st.floats(-2, 2), st.sampled_from(sorted(FAR)))
def test_no_gradient_exceeds_the_bound_times_the_advantage(
    log_ratio: float, advantage: float, kind: str
) -> None:
    trainer = torch.tensor([-1e-3], dtype=torch.float64, requires_grad=True)
    generated = Tokens(
        trainer.detach() - log_ratio,
        torch.tensor([advantage], dtype=torch.float64),
        torch.tensor([0]),
        torch.tensor([0]),
    )
    corrected_surrogate(trainer, generated, options(kind=kind)).loss.sum().backward()
    assert trainer.grad is not None
    assert abs(float(trainer.grad)) <= 20 * abs(advantage) + 1e-9


@pytest.mark.parametrize("kind", ["none", "decoupled", "dppo"])
def test_old_tokens_count_less(kind: str) -> None:
    generated = tokens([0.3, 0.3, 0.3], [1.0, 1.0, 1.0], lags=[0, 1, 3])
    _, plain = run([0.33] * 3, generated, kind=kind)
    _, weighted = run([0.33] * 3, generated, kind=kind, staleness_power=0.5)
    assert weighted == pytest.approx([g / math.sqrt(1 + d) for g, d in zip(plain, [0, 1, 3], strict=True)])


def test_options_that_would_not_be_read_are_refused() -> None:
    with pytest.raises(ValidationError, match="level=sequence has no effect with kind=icepop"):
        CorrectionConfig(kind="icepop", level="sequence")
    for kind in ("auto", "none", "dppo"):
        with pytest.raises(ValidationError, match="has no proximal policy"):
            CorrectionConfig(kind=kind, proximal="interpolated")  # type: ignore[arg-type]


def mixed_group() -> Any:
    """Two trajectories of 4 and 2 tokens, generated under versions 3 and 5, and 5."""
    sample = make_sample([1, 2])
    trajectories = []
    for index, spans in enumerate([((3, 0, 1), (5, 1, 4)), ((5, 0, 2),)]):
        session = Session(sample, index)
        generation = make_generation(range(10, 10 + spans[-1][2]))
        generation = type(generation)(
            generation.token_ids,
            generation.sampler_logprobs,
            tuple(VersionSpan(*span) for span in spans),
            True,
        )
        session.append_action(generation)
        trajectories.append(session.trajectory("", "ok", 0.0))
        trajectories[-1].score = Score(float(index), {})
    return group_with_advantages(trajectories, [1.0, -1.0])


def packed(group: Any, version: int | None) -> Any:
    return pack(
        [group],
        no_pixels,
        PackOptions(
            num_ranks=1, max_tokens=64, aggregation="token", max_completion_tokens=8, keep_zero_advantage=True
        ),
        version=version,
    )[0][0]


def test_the_version_that_drew_each_token_reaches_the_trainer() -> None:
    group = mixed_group()
    assert group.trajectories[0].ledgers[0].versions.tolist() == [-1, -1, 3, 5, 5, 5]
    assert oldest_version([group]) == 3
    assert oldest_version([]) is None
    batch = packed(group, version=5)
    assert batch.token_staleness.tolist() == [2, 0, 0, 0, 0, 0]
    assert batch.sequence_ids.tolist() == [0, 0, 0, 0, 1, 1]
    assert batch.proximal_logprobs is None
    assert packed(group, version=None).token_staleness.tolist() == [0] * 6
    assert packed(make_group([2, 1]), version=0).token_staleness.tolist() == [0] * 3


def test_metrics_by_age_add_up_over_ranks() -> None:
    """Two tokens of age 0 at ratio 1, two of age 2 at ratios 1 and 3, one of age 99."""
    sampler = torch.tensor([0.5, 0.5, 0.2, 0.2, 0.2]).log()
    trainer = torch.tensor([0.5, 0.5, 0.2, 0.6, 0.2]).log()
    lags = torch.tensor([0, 0, 2, 2, 99])
    surrogate = Surrogate(
        torch.zeros(5),
        stopped=torch.tensor([False, True, False, True, False]),
        limited=torch.tensor([False, False, False, True, False]),
    )
    parts = [
        staleness_sums(trainer[i:j], sampler[i:j], lags[i:j], Surrogate(*(t[i:j] for t in (
            surrogate.loss, surrogate.stopped, surrogate.limited))))
        for i, j in ((0, 2), (2, 5), (5, 5))
    ]  # fmt: skip
    assert parts[0].shape == (NUM_ROWS, len(COLUMNS))
    metrics = staleness_metrics(sum(parts))
    assert metrics["off_policy/staleness_mean"] == pytest.approx((0 + 0 + 2 + 2 + 8) / 5)
    assert metrics["off_policy/ess"] == pytest.approx(7**2 / (5 * 13))
    assert metrics["off_policy/ess_staleness2"] == pytest.approx(4**2 / (2 * 10))
    assert metrics["off_policy/ess_staleness0"] == pytest.approx(1.0)
    assert metrics["off_policy/clip_fraction_staleness0"] == pytest.approx(0.5)
    assert metrics["off_policy/limited_fraction"] == pytest.approx(0.2)
    assert metrics["off_policy/limited_fraction_staleness2"] == pytest.approx(0.5)
    assert metrics["off_policy/mismatch_staleness2"] == pytest.approx((3 - math.log(3) - 1) / 2, rel=1e-5)
    assert metrics["off_policy/token_share_staleness8_up"] == pytest.approx(0.2)
    assert "off_policy/ess_staleness1" not in metrics
    assert all(describe(name) for name in metrics)


def test_a_synchronous_steps_metrics_are_not_repeated_by_age() -> None:
    fresh = staleness_sums(
        torch.zeros(2), torch.zeros(2), torch.zeros(2, dtype=torch.int64),
        Surrogate(torch.zeros(2), torch.zeros(2, dtype=torch.bool), torch.zeros(2, dtype=torch.bool)),
    )  # fmt: skip
    assert set(staleness_metrics(fresh)) <= set(METRICS)
    assert staleness_metrics(fresh)["off_policy/ess"] == 1.0
    assert staleness_metrics(np.zeros_like(fresh)) == {}
