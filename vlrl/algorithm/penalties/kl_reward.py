"""KL to the reference as a part of the reward: an advantage is reduced by the KL of the later tokens."""

from __future__ import annotations

import torch
from torch import Tensor


def kl_to_go(sampler_logprobs: Tensor, reference_logprobs: Tensor, sequence_ids: Tensor) -> Tensor:
    """Σ_{i ≥ t} KL_i over the trained tokens of a ledger, KL_i = log π_b(o_i) - log π_ref(o_i).

    RLHF's PPO has -β KL_i as a reward of token i (Ziegler et al., arXiv 1909.08593, Eq. 2), and REINFORCE++
    its sum in the advantage (arXiv 2501.03262, §3):

        A_t = r(x, o) - β Σ_{i=t}^T KL_i

    A token answers for what it leads to: the mean of Σ_{i ≥ t} KL_i · ∇log π(o_t) over tokens of π_b is the
    gradient of the whole sequence's KL. It is k1, whose sum has no bias; k2 and k3 would have one here.

    Args:
        sampler_logprobs: [M] nats, of the policy that generated the tokens.
        reference_logprobs: [M] nats.
        sequence_ids: [M] int64, ledger by ledger; a ledger's tokens are in their order.

    Returns:
        [M] float64 on the host, each ledger added up from its end, wherever it is packed.
    """
    per_token = (sampler_logprobs.double() - reference_logprobs.double()).detach().cpu()
    if not len(per_token):
        return per_token
    lengths = torch.unique_consecutive(sequence_ids.cpu(), return_counts=True)[1].tolist()
    return torch.cat([part.flip(0).cumsum(0).flip(0) for part in torch.split(per_token, lengths)])
