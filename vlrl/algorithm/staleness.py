"""Statistics of a step's tokens by staleness: sums that ranks add up, and the metrics made of them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from vlrl.algorithm.loss import kl_k3
from vlrl.algorithm.off_policy import Surrogate
from vlrl.algorithm.ordered import sums_by

Sums = npt.NDArray[np.float64]
"""[NUM_ROWS, len(COLUMNS)], a row for each number of updates; the last row is for that many and more."""

NUM_ROWS = 9
COLUMNS = ("tokens", "mismatch", "ratio", "squared_ratio", "stopped", "limited")


def no_sums() -> Sums:
    """The sums over no tokens."""
    return np.zeros((NUM_ROWS, len(COLUMNS)))


def staleness_sums(
    trainer_logprobs: Tensor, sampler_logprobs: Tensor, token_staleness: Tensor, surrogate: Surrogate
) -> Sums:
    """Sums over the tokens of each staleness.

    Args:
        trainer_logprobs: [M] nats, without gradient.
        sampler_logprobs: [M] nats.
        token_staleness: [M] int, updates.
        surrogate: which tokens were stopped or limited.
    """
    ratios = (trainer_logprobs - sampler_logprobs).double().exp()
    columns = (
        torch.ones_like(ratios),
        kl_k3(sampler_logprobs, trainer_logprobs),  # KL(sampler ‖ trainer) over the sampler's own tokens
        ratios,
        ratios.square(),
        surrogate.stopped,
        surrogate.limited,
    )
    values = torch.stack([column.double() for column in columns], dim=1)
    rows = token_staleness.clamp(0, NUM_ROWS - 1).long()
    sums: Sums = sums_by(rows, values, NUM_ROWS).cpu().numpy()
    return sums


def staleness_metrics(sums: Sums) -> dict[str, float]:
    """Metrics of `vlrl.tracking.metrics`: over all tokens, and by staleness if any token was not fresh."""
    total = sums.sum(axis=0)
    if not total[0]:
        return {}
    updates = np.arange(NUM_ROWS)
    found = {"off_policy/staleness_mean": float(sums[:, 0] @ updates / total[0])}
    overall = _rates(total)  # of which policy/sampler_mismatch and policy/clip_fraction are logged already
    found |= {f"off_policy/{name}": overall[name] for name in ("ess", "limited_fraction")}
    if sums[1:, 0].any():
        for row in updates[sums[:, 0] > 0]:
            suffix = f"staleness{row}" if row < NUM_ROWS - 1 else f"staleness{row}_up"
            found[f"off_policy/token_share_{suffix}"] = float(sums[row, 0] / total[0])
            found |= {f"off_policy/{name}_{suffix}": value for name, value in _rates(sums[row]).items()}
    return found


def _rates(row: npt.NDArray[np.float64]) -> dict[str, float]:
    values = dict(zip(COLUMNS, row.tolist(), strict=True))
    tokens = values["tokens"]
    return {
        "mismatch": values["mismatch"] / tokens,
        # Kish's effective sample size (Survey Sampling, 1965, §11.2) as a share: (Σρ)² / (N Σρ²)
        "ess": values["ratio"] ** 2 / (tokens * values["squared_ratio"]),
        "clip_fraction": values["stopped"] / tokens,
        "limited_fraction": values["limited"] / tokens,
    }
