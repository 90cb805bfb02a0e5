"""Group-relative credit: how much better was a completion than its siblings."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vlrl.errors import ConfigError
from vlrl.ledger import FloatArray


def group_advantages(rewards: Sequence[float], *, scale_by_std: bool) -> FloatArray:
    """GRPO's advantage, DeepSeekMath (arXiv 2402.03300) §4.1.2: A_i = (r_i - mean(r)) / std(r).

    Args:
        rewards: [n] of one group.
        scale_by_std: divide by the group's standard deviation (GRPO); False is Dr. GRPO
            (arXiv 2503.20783, Eq. 3), which drops it to avoid favouring groups of little spread.

    Returns:
        [n] float32. Exactly zero when all rewards are equal: a float32 mean of equal rewards is off by
        rounding, and dividing that by a tiny deviation would be a gradient made of noise.

    Raises:
        ConfigError: for n = 1, which has no baseline.
    """
    values = np.asarray(rewards, dtype=np.float64)
    if values.size < 2:
        raise ConfigError("a group baseline needs rollout.group_size ≥ 2, got 1")
    if values.max() == values.min():
        return np.zeros(values.size, dtype=np.float32)
    centred = values - values.mean()
    if scale_by_std:
        centred /= values.std(ddof=1)  # the unbiased deviation, as TRL and DeepSeek's reference code use
    advantages: FloatArray = centred.astype(np.float32)
    return advantages
