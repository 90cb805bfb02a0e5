"""Statistics of a step's tokens by policy: sums that ranks add up, and their metrics."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from vlrl.algorithm.loss import kl_k3
from vlrl.algorithm.ordered import sums_by

Sums = npt.NDArray[np.float64]
"""[num_policies, len(COLUMNS)]; one row of zeros where there is one policy."""

COLUMNS = ("tokens", "entropy", "mismatch", "kl_reference")


def no_sums() -> Sums:
    """The sums over no tokens, to which those of any number of policies can be added."""
    return np.zeros((1, len(COLUMNS)))


def policy_sums(
    policies: Tensor,
    num_policies: int,
    entropy: Tensor,
    trainer_logprobs: Tensor,
    sampler_logprobs: Tensor,
    reference_logprobs: Tensor | None,
) -> Sums:
    """Sums over the trained tokens of each policy.

    Args:
        policies: [M] int64, number of each token's policy.
        num_policies: of the run.
        entropy: [M] nats, without gradient.
        trainer_logprobs: [M] nats, without gradient.
        sampler_logprobs: [M] nats.
        reference_logprobs: [M] nats; None without a KL term.
    """
    kl = torch.zeros_like(entropy)
    if reference_logprobs is not None:
        kl = kl_k3(trainer_logprobs, reference_logprobs)
    mismatch = kl_k3(sampler_logprobs, trainer_logprobs)
    columns = (torch.ones_like(entropy), entropy, mismatch, kl)
    values = torch.stack([column.double() for column in columns], dim=1)
    sums: Sums = sums_by(policies, values, num_policies).cpu().numpy()
    return sums


def policy_metrics(sums: Sums, names: Sequence[str], *, has_reference: bool) -> dict[str, float]:
    """`policies/NAME/…` of each policy that has a trained token, see `vlrl.tracking.metrics`."""
    found: dict[str, float] = {}
    for name, row in zip(names, sums.tolist(), strict=False):
        values = dict(zip(COLUMNS, row, strict=True))
        tokens = values.pop("tokens")
        found[f"policies/{name}/num_trained_tokens"] = tokens
        if not has_reference:
            del values["kl_reference"]
        if tokens:
            found |= {f"policies/{name}/{column}": value / tokens for column, value in values.items()}
    return found
