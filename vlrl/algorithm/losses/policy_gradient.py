"""REINFORCE: the log-likelihood weighted by the advantage."""

from __future__ import annotations

import torch
from torch import Tensor


def policy_gradient(
    trainer_logprobs: Tensor, anchor_logprobs: Tensor, advantages: Tensor
) -> tuple[Tensor, Tensor]:
    """REINFORCE (Williams 1992), of RLOO (arXiv 2402.14740), OPO and GPG: loss_t = -A_t log π_t.

    There is no ratio and no trust region, so it is for tokens of the policy that learns.
    """
    return -advantages * trainer_logprobs, torch.zeros_like(advantages, dtype=torch.bool)
