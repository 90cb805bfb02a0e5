"""GSPO and GSPO-token: the ratio of a sequence, not of a token."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from vlrl.algorithm.loss import ratio_of


def gspo(
    trainer_logprobs: Tensor,
    anchor_logprobs: Tensor,
    advantages: Tensor,
    *,
    sequence_sums: Callable[[Tensor], Tensor],
    low: float = 3e-4,
    high: float = 4e-4,
) -> tuple[Tensor, Tensor]:
    """GSPO (arXiv 2507.18071, Eq. 5 to 7), written as its Eq. 13 and 14, GSPO-token.

        s_i = (π(y_i) / π_old(y_i))^(1/|y_i|)      s_i,t = sg[s_i] · π_t / sg[π_t]
        loss_t = -min(s_i,t A_t, clip(s_i,t, 1 - low, 1 + high) A_t)

    s_i,t has the value of s_i, and where all tokens of a sequence have one advantage, the sum of its losses
    has the gradient of GSPO's own (§4.3). Where they have their own, as with credit by turn, it is
    GSPO-token.

    Args:
        trainer_logprobs: [M] nats, with gradient.
        anchor_logprobs: [M] nats.
        advantages: [M].
        sequence_sums: every token's sum over its sequence, without gradient.
        low: how far s_i may fall below 1.
        high: how far it may rise above 1. Both are the paper's (§5.1), far below a token's.
    """
    log_ratios = (trainer_logprobs - anchor_logprobs).detach()
    lengths = sequence_sums(torch.ones_like(log_ratios))
    of_sequence = ratio_of(sequence_sums(log_ratios) / lengths)
    ratio = of_sequence * (trainer_logprobs - trainer_logprobs.detach()).exp()
    free, bounded = ratio * advantages, ratio.clamp(1.0 - low, 1.0 + high) * advantages
    return -torch.minimum(free, bounded), bounded < free
