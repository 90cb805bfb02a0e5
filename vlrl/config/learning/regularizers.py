"""The sections of the config tree about adaptive coefficients of KL and entropy, and the reference."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field, model_validator

from vlrl.config.section import Section

if TYPE_CHECKING:
    from vlrl.config.load import Config


class AdaptiveKLConfig(Section):
    """A coefficient that follows the KL (Ziegler et al., arXiv 1909.08593, §2.2); it begins at kl_coef."""

    target: float = Field(gt=0)
    """KL to keep, nats a token, as policy/kl_reference has it."""
    horizon: float = Field(10_000, gt=0)
    """Samples over which the coefficient can change by a fifth: the paper's 1/K_β times its batch size."""


class AdaptiveEntropyConfig(Section):
    """A coefficient that keeps entropy up (Skywork-OR1, arXiv 2505.22312, §4); it begins at entropy_coef."""

    target: float = Field(gt=0)
    """Entropy below which there is a bonus, nats a token, as policy/entropy has it."""
    increment: float = Field(0.005, gt=0)
    """Change of the coefficient at each update."""
    largest: float = Field(0.1, gt=0)
    """Bound of the coefficient."""


class ReferenceConfig(Section):
    """Whether the reference follows the policy (TR-DPO, arXiv 2404.09656; TRL's sync_ref_model)."""

    every: int | None = Field(None, ge=1)
    """Updates between two steps of the reference towards the policy; null: it stays the starting model."""
    mix: float = Field(1.0, gt=0, le=1)
    """Share of the policy in it after such a step: 1 resets it; every=1 and 0.01 are a moving average."""

    @model_validator(mode="after")
    def _mix_is_read(self) -> ReferenceConfig:
        if self.every is None and self.mix != 1.0:
            raise ValueError(f"mix={self.mix:g} has no effect with every=null; set every, or leave mix out")
        return self


def require_effect(config: Config) -> None:
    """Raise ValueError for what has no effect, or another than it says, with the rest of the config."""
    algorithm = config.algorithm
    names = {chosen.name for chosen in algorithm.selections}
    if "kl_cov" in names and algorithm.num_minibatches == 1 and not config.asynchronous.streams:
        raise ValueError(
            "algorithm.selections=kl_cov with algorithm.num_minibatches=1: the only update of a step starts "
            "from the policy that generated its tokens, where the gradient of their KL is 0; raise "
            "num_minibatches, or set selections=clip_cov"
        )
    adaptive, num_samples = algorithm.kl_adaptive, config.samples_per_update
    if adaptive is not None and adaptive.horizon < num_samples:
        raise ValueError(
            f"algorithm.kl_adaptive.horizon={adaptive.horizon:g} is below the {num_samples} samples of an "
            "update, so a single update could change kl_coef by more than a fifth; raise horizon"
        )
    entropy = algorithm.entropy_adaptive
    if entropy is not None and entropy.largest < algorithm.entropy_coef:
        raise ValueError(
            f"algorithm.entropy_coef={algorithm.entropy_coef:g}, the coefficient's first value, is above "
            f"algorithm.entropy_adaptive.largest={entropy.largest:g}; lower entropy_coef, or raise largest"
        )
    if algorithm.reference.every is not None and config.lora is not None:
        raise ValueError(
            f"algorithm.reference.every={algorithm.reference.every} with lora: the reference is the model "
            "without its adapters, of which there is no copy; leave reference out, or train without lora"
        )
