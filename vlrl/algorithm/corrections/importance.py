"""Corrections that weight a token by f(ρ), ρ = π_p / π_b; π_p is the proximal policy.

Each returns (weights [M], limited [M] bool: f(ρ) is not ρ). The arguments without a default are given by
`vlrl.algorithm.off_policy`: log-probabilities [M] in nats without gradient, and sums over a token's ledger.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:  # a config that names one of these is read without torch
    from torch import Tensor

Level = Literal["token", "sequence"]


def none(sampler_logprobs: Tensor) -> tuple[Tensor, Tensor]:
    """PPO's ratio (arXiv 1707.06347, Eq. 7) alone: the trust region is around π_b, and every weight is 1."""
    return _ones(sampler_logprobs)


def uncorrected(sampler_logprobs: Tensor, *, proximal_logprobs: Tensor) -> tuple[Tensor, Tensor]:
    """A weight of 1 around π_p, as if π_p had generated the token: what is lost without a correction."""
    return _ones(proximal_logprobs)


def decoupled(
    sampler_logprobs: Tensor, *, proximal_logprobs: Tensor, cap: float = 20.0
) -> tuple[Tensor, Tensor]:
    """Decoupled PPO (arXiv 2110.00641, §3; AReaL, arXiv 2505.24298, Eq. 5): min(ρ, cap), cap as a safeguard.

    Args:
        sampler_logprobs: log π_b.
        proximal_logprobs: log π_p.
        cap: largest weight; the papers have none.
    """
    return _truncated((proximal_logprobs - sampler_logprobs).exp(), cap)


def truncated(
    sampler_logprobs: Tensor,
    *,
    proximal_logprobs: Tensor,
    sequence_sums: Callable[[Tensor], Tensor],
    level: Level = "token",
    cap: float = 2.0,
) -> tuple[Tensor, Tensor]:
    """Truncated importance sampling (Ionides 2008): min(ρ, cap).

    For two engines that differ: Yao et al. 2025, "Your efficient RL framework secretly brings you off-policy
    RL training".

    Args:
        sampler_logprobs: log π_b.
        proximal_logprobs: log π_p.
        sequence_sums: every token's sum over its ledger.
        level: sequence has the product of a ledger's ratios as ρ of each of its tokens.
        cap: largest weight, C.
    """
    return _truncated(_ratios(proximal_logprobs - sampler_logprobs, level, sequence_sums), cap)


def masked(
    sampler_logprobs: Tensor,
    *,
    proximal_logprobs: Tensor,
    sequence_sums: Callable[[Tensor], Tensor],
    level: Level = "token",
    cap: float = 2.0,
) -> tuple[Tensor, Tensor]:
    """Masked importance sampling (Liu, Li et al. 2025, "When speed kills stability", §4.2): ρ, 0 above cap.

    Args:
        sampler_logprobs: log π_b.
        proximal_logprobs: log π_p.
        sequence_sums: every token's sum over its ledger.
        level: sequence has the product of a ledger's ratios as ρ of each of its tokens.
        cap: largest weight, C.
    """
    ratios = _ratios(proximal_logprobs - sampler_logprobs, level, sequence_sums)
    return _masked(ratios, ratios > cap)


def icepop(
    sampler_logprobs: Tensor,
    *,
    proximal_logprobs: Tensor,
    icepop_low: float = 0.5,
    icepop_high: float = 5.0,
) -> tuple[Tensor, Tensor]:
    """IcePop (Ring-1T, arXiv 2510.18855, §IcePop), M(k; α, β): ρ if α ≤ ρ ≤ β, else 0.

    Args:
        sampler_logprobs: log π_b.
        proximal_logprobs: log π_p.
        icepop_low: α.
        icepop_high: β.
    """
    ratios = (proximal_logprobs - sampler_logprobs).exp()
    return _masked(ratios, (ratios < icepop_low) | (ratios > icepop_high))


def _ratios(log_ratios: Tensor, level: Level, sequence_sums: Callable[[Tensor], Tensor]) -> Tensor:
    return (sequence_sums(log_ratios) if level == "sequence" else log_ratios).exp()


def _ones(like: Tensor) -> tuple[Tensor, Tensor]:
    ones = like.new_ones(like.shape)
    return ones, ones < 0


def _truncated(ratios: Tensor, cap: float) -> tuple[Tensor, Tensor]:
    return ratios.clamp(max=cap), ratios > cap


def _masked(ratios: Tensor, limited: Tensor) -> tuple[Tensor, Tensor]:
    return ratios.masked_fill(limited, 0.0), limited  # not a product: infinity times 0 is not a number
