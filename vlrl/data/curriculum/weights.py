"""Weights of rows by their pass rates: functions of [N] float64 rates that return [N] weights, at least 0.

A row comes in proportion to its weight. Rates are those of `vlrl.data.curriculum.evidence`, or with
sampler.adaptive=false those of the start model.
"""

from __future__ import annotations

import math

import numpy as np

from vlrl.data.curriculum.evidence import RateArray
from vlrl.errors import ConfigError


def learnability(rates: RateArray, *, explore: float = 0.1) -> RateArray:
    """p(1 - p), the variance of whether a completion passes (arXiv 2502.12272, learnability).

    A group whose completions all pass, or all fail, has no advantages: the share of such rows is what uniform
    sampling spends its tokens on. SPEED (arXiv 2506.09016) shows that the gradient's signal-to-noise ratio
    vanishes at both ends too.

    Args:
        rates: pass rates.
        explore: share of rows that come uniformly, whatever their rate.
    """
    return mixed(rates * (1.0 - rates), explore)


def hardness(rates: RateArray, *, explore: float = 0.1) -> RateArray:
    """1 - p, prioritized sampling of Kimi k1.5 (arXiv 2501.12599): what fails comes most often.

    Args:
        rates: pass rates.
        explore: share of rows that come uniformly.
    """
    return mixed(1.0 - rates, explore)


def band(rates: RateArray, *, low: float = 0.1, high: float = 0.9) -> RateArray:
    """Rows whose rate lies within [low, high], all alike.

    Raises:
        ConfigError: for an empty band.
    """
    if low > high:
        raise ConfigError(f"sampler 'band': low={low:g} is above high={high:g}; swap them")
    return ((low <= rates) & (rates <= high)).astype(np.float64)


def easy_to_hard(
    rates: RateArray, *, epochs: float, first: float = 0.2, epochs_to_all: float = 1.0
) -> RateArray:
    """The easiest rows, a share that grows to all: competence-based learning (arXiv 1903.09848, Eq. 6).

        c(t) = min(1, t (1 - c_0) / T + c_0)

    Rows of equal rate come in together.

    Args:
        rates: pass rates.
        epochs: rows of this source so far, divided by their number: t.
        first: share of the rows at the beginning, c_0.
        epochs_to_all: when all rows have come in, T.

    Raises:
        ConfigError: for options outside their range.
    """
    if not 0.0 < first <= 1.0 or epochs_to_all <= 0.0:
        raise ConfigError(
            f"sampler 'easy_to_hard': first={first:g} must be in (0, 1], and epochs_to_all={epochs_to_all:g} "
            "above 0"
        )
    share = min(1.0, epochs * (1.0 - first) / epochs_to_all + first)
    number = max(1, math.ceil(share * rates.size))
    lowest = np.partition(rates, rates.size - number)[rates.size - number]
    eligible: RateArray = (rates >= lowest).astype(np.float64)
    return eligible


def mixed(weights: RateArray, explore: float) -> RateArray:
    """Probabilities: `explore` of them uniform, the rest in proportion to the weights.

    Raises:
        ConfigError: for a share outside [0, 1].
    """
    if not 0.0 <= explore <= 1.0:
        raise ConfigError(f"sampler option explore={explore:g} must be in [0, 1]")
    total, uniform = float(weights.sum()), np.full(weights.size, 1.0 / weights.size)
    return uniform if total == 0.0 else (1.0 - explore) * weights / total + explore * uniform
