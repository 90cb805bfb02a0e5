"""The loss on the tokens of highest entropy alone."""

from __future__ import annotations

import math

from torch import Tensor


def top_entropy(
    logprobs: Tensor, advantages: Tensor, entropies: Tensor, *, share: float = 0.2
) -> tuple[Tensor, Tensor]:
    """Forking tokens alone (arXiv 2506.01939, §4): I[H_t ≥ τ_ρ], τ_ρ the (1 - ρ)-quantile of the batch.

    They decide how an answer goes on; the others mostly finish what was begun.

    Args:
        logprobs: [N] nats.
        advantages: [N].
        entropies: [N] nats, H_t.
        share: ρ, of the tokens of an update; the paper's is 0.2.
    """
    kept = entropies >= threshold(entropies, share)
    return kept.to(entropies.dtype), entropies.new_zeros(entropies.shape)


def threshold(values: Tensor, share: float) -> float:
    """The smallest of the largest `share` of [N] values, N above 0: the quantile of 1 - share, rounded up."""
    num_below = math.ceil(
        (1.0 - share) * (len(values) - 1) - 1e-9
    )  # of which the product may be above an integer
    return float(values.sort().values[num_below])
