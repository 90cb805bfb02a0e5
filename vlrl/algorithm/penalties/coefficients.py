"""Adaptive coefficients of KL and entropy: pure functions, and their state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vlrl.config.algorithm import AlgorithmConfig

LARGEST_ERROR = 0.2


def adapted_kl(coef: float, kl: float, *, target: float, gain: float) -> float:
    """Ziegler et al. (arXiv 1909.08593, §2.2): β' = β (1 + K_β e), e = clip(KL / target - 1, -0.2, 0.2).

    Args:
        coef: β of the update.
        kl: that was measured in it.
        target: in the same unit.
        gain: K_β.
    """
    error = min(max(kl / target - 1.0, -LARGEST_ERROR), LARGEST_ERROR)
    return coef * (1.0 + gain * error)


def adapted_entropy(coef: float, entropy: float, *, target: float, increment: float, largest: float) -> float:
    """Skywork-OR1 (arXiv 2505.22312, §4): c' = c + Δ below the target, c - Δ above it, within [0, largest].

    Args:
        coef: c of the update.
        entropy: that was measured in it, e.
        target: in the same unit.
        increment: Δ.
        largest: bound of c; the paper has none, and none at 0, below which it would be a penalty.
    """
    step = increment if entropy < target else -increment if entropy > target else 0.0
    return min(max(coef + step, 0.0), largest)


@dataclass(frozen=True, slots=True)
class Coefficients:
    """Coefficients of one update's terms, the same on all ranks; part of a checkpoint.

    Attributes:
        kl: β.
        entropy: c, which adapts.
        bonus: α of the entropy in the loss, c where the entropy was at most the target, else 0.
    """

    kl: float
    entropy: float
    bonus: float

    @classmethod
    def first(cls, algorithm: AlgorithmConfig) -> Coefficients:
        """Those that a run begins with."""
        return cls(algorithm.kl_coef, algorithm.entropy_coef, algorithm.entropy_coef)

    @classmethod
    def restored(cls, state: Mapping[str, float], algorithm: AlgorithmConfig) -> Coefficients:
        """Those of a checkpoint as far as the config lets them adapt; the others are the config's."""
        first = asdict(cls.first(algorithm))
        kept = {"kl"} if algorithm.kl_adaptive is not None else set[str]()
        kept |= {"entropy", "bonus"} if algorithm.entropy_adaptive is not None else set()
        return cls(**{**first, **{name: value for name, value in state.items() if name in kept}})

    def after(self, kl: float, entropy: float, algorithm: AlgorithmConfig, num_samples: int) -> Coefficients:
        """Those of the next update.

        Args:
            kl: to the reference, of this update's tokens.
            entropy: of the same.
            algorithm: the config's.
            num_samples: of an update; over the horizon, K_β.
        """
        coef, held, bonus = self.kl, self.entropy, self.bonus
        of_kl, of_entropy = algorithm.kl_adaptive, algorithm.entropy_adaptive
        if of_kl is not None:
            coef = adapted_kl(coef, kl, target=of_kl.target, gain=num_samples / of_kl.horizon)
        if of_entropy is not None:
            target = of_entropy.target
            held = adapted_entropy(
                held, entropy, target=target, increment=of_entropy.increment, largest=of_entropy.largest
            )
            bonus = held if entropy <= target else 0.0  # α_k = c_k · I{e_k ≤ target}
        return Coefficients(coef, held, bonus)
