"""IPO: a pair's margin is pulled to a constant, instead of growing without bound."""

from __future__ import annotations

from torch import Tensor


def ipo(
    chosen_ratios: Tensor,
    rejected_ratios: Tensor,
    *,
    chosen_lengths: Tensor,
    rejected_lengths: Tensor,
    beta: float,
    average: bool = True,
) -> Tensor:
    """IPO (arXiv 2310.12036, Eq. 17): (h - 1 / 2τ)², τ = β, where h is the difference of both log-ratios.

    Args:
        chosen_ratios: [M] nats, log π / π_ref of the chosen completion.
        rejected_ratios: [M] nats, that of the rejected one.
        chosen_lengths: [M] its tokens.
        rejected_lengths: [M] those of the rejected one.
        beta: τ.
        average: take the mean log-ratio of a completion's tokens, as the authors and TRL do: a sum's h grows
            with the length, and 1 / 2τ does not. False is the equation as it is printed.
    """
    if average:
        chosen_ratios, rejected_ratios = chosen_ratios / chosen_lengths, rejected_ratios / rejected_lengths
    return (chosen_ratios - rejected_ratios - 1 / (2 * beta)).square()
