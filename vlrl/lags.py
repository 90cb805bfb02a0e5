"""How the tokens of each age fared in a step: sums that ranks add up, and the metrics made of them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from vlrl.loss import kl_k3
from vlrl.off_policy import Surrogate
from vlrl.ordered import sums_by

Sums = npt.NDArray[np.float64]
"""[NUM_LAGS, NUM_COLUMNS]; the last row is of that age and all above."""

NUM_LAGS = 9
COLUMNS = ("tokens", "mismatch", "ratio", "squared_ratio", "stopped", "limited")


def no_sums() -> Sums:
    """Of no tokens."""
    return np.zeros((NUM_LAGS, len(COLUMNS)))


def lag_sums(
    trainer_logprobs: Tensor, sampler_logprobs: Tensor, version_lags: Tensor, surrogate: Surrogate
) -> Sums:
    """Sums over the tokens of each age.

    Args:
        trainer_logprobs: [M] nats, without gradient.
        sampler_logprobs: [M] nats.
        version_lags: [M] int.
        surrogate: what became of them.
    """
    ratios = (trainer_logprobs - sampler_logprobs).double().exp()
    columns = (
        torch.ones_like(ratios),
        kl_k3(sampler_logprobs, trainer_logprobs),  # KL(sampler ‖ trainer) on the sampler's own draws
        ratios,
        ratios.square(),
        surrogate.stopped,
        surrogate.limited,
    )
    values = torch.stack([column.double() for column in columns], dim=1)
    rows = version_lags.clamp(0, NUM_LAGS - 1).long()
    sums: Sums = sums_by(rows, values, NUM_LAGS).cpu().numpy()
    return sums


def lag_metrics(sums: Sums) -> dict[str, float]:
    """Metrics of `vlrl.metrics`: of all tokens, and of each age if any token was not fresh."""
    total = sums.sum(axis=0)
    if not total[0]:
        return {}
    lags = np.arange(NUM_LAGS)
    found = {"off_policy/lag_mean": float(sums[:, 0] @ lags / total[0])}
    overall = _rates(total)  # of which policy/sampler_mismatch and policy/clip_fraction are logged already
    found |= {f"off_policy/{name}": overall[name] for name in ("ess", "limited_fraction")}
    if sums[1:, 0].any():
        for lag in lags[sums[:, 0] > 0]:
            suffix = f"lag{lag}" if lag < NUM_LAGS - 1 else f"lag{lag}_up"
            found[f"off_policy/token_share_{suffix}"] = float(sums[lag, 0] / total[0])
            found |= {f"off_policy/{name}_{suffix}": value for name, value in _rates(sums[lag]).items()}
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
