"""Clip-Cov and KL-Cov: tokens whose log-probability and advantage covary most make entropy collapse.

The entropy of a softmax policy falls by the covariance of log-probability and advantage at each step (Cui et
al., arXiv 2505.22617, §3). A small share of tokens has most of it.
"""

from __future__ import annotations

import torch
from torch import Tensor


def covariances(logprobs: Tensor, advantages: Tensor) -> Tensor:
    """Cov_i = (log π_i - mean log π) (A_i - mean A), arXiv 2505.22617, Eq. 10: [N] and [N] to [N].

    The means are over all tokens, added up in the order of their size: they do not depend on packing.
    """
    centred = [values - values.sort().values.mean() for values in (logprobs, advantages)]
    return centred[0] * centred[1]


def clip_cov(
    logprobs: Tensor,
    advantages: Tensor,
    entropies: Tensor,
    *,
    seed: int,
    share: float = 2e-4,
    low: float = 1.0,
    high: float = 5.0,
) -> tuple[Tensor, Tensor]:
    """Clip-Cov (arXiv 2505.22617, Eq. 11 and 12): r · N tokens of Cov in [ω_low, ω_high] have no gradient.

    They are sampled uniformly, by their place in the order of Cov.

    Args:
        logprobs: [N] nats.
        advantages: [N].
        entropies: [N] nats; not read.
        seed: of this update.
        share: r; at least one token.
        low: ω_low.
        high: ω_high.
    """
    found = covariances(logprobs, advantages)
    inside = found[(found >= low) & (found <= high)].sort().values
    generator = torch.Generator().manual_seed(seed)
    places = torch.randperm(len(inside), generator=generator)[: _number(share, len(found))]
    kept = ~torch.isin(found, inside[places])
    return kept.to(found.dtype), found.new_zeros(found.shape)


def kl_cov(
    logprobs: Tensor,
    advantages: Tensor,
    entropies: Tensor,
    *,
    share: float = 2e-3,
    coef: float = 1.0,
) -> tuple[Tensor, Tensor]:
    """KL-Cov (arXiv 2505.22617, Eq. 13 and 14): β KL(π_old ‖ π) on the k · N tokens of the largest Cov.

    Args:
        logprobs: [N] nats.
        advantages: [N].
        entropies: [N] nats; not read.
        share: k; at least one token.
        coef: β.
    """
    found = covariances(logprobs, advantages)
    smallest = found.sort(descending=True).values[_number(share, len(found)) - 1]
    return found.new_ones(found.shape), coef * (found >= smallest).to(found.dtype)


def _number(share: float, num_tokens: int) -> int:
    return max(1, int(share * num_tokens))
