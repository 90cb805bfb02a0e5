"""CISPO: the importance weight is clipped, not the token's gradient."""

from __future__ import annotations

import math

from torch import Tensor

from vlrl.algorithm.loss import ratio_of


def cispo(
    trainer_logprobs: Tensor,
    anchor_logprobs: Tensor,
    advantages: Tensor,
    *,
    largest: float = 5.0,
    smallest: float = 0.0,
) -> tuple[Tensor, Tensor]:
    """MiniMax-M1's (arXiv 2506.13585, Eq. 4 and 5): loss_t = -sg[clip(ρ_t, smallest, largest)] A_t log π_t.

    Rare tokens that start a new thought keep their gradient, where PPO stops them at once.

    Args:
        trainer_logprobs: [M] nats, with gradient.
        anchor_logprobs: [M] nats.
        advantages: [M].
        largest: weight, 1 + ε_high of the paper, which does not name it; 5 is ScaleRL's (arXiv 2510.13786).
        smallest: weight, 1 - ε_low; the paper sets no lower bound, which is 0.

    Returns:
        (loss [M], [M] bool: the weight was cut; such a token has a gradient still).
    """
    ratio = ratio_of((trainer_logprobs - anchor_logprobs).detach())
    weights = ratio.clamp(smallest, largest if math.isfinite(largest) else None)
    return -weights * advantages * trainer_logprobs, weights != ratio
