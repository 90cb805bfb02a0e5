"""The section of preference learning: which loss of a pair, or of a completion with a label."""

from __future__ import annotations

import inspect
from typing import Any, Literal

from pydantic import Field, model_validator

from vlrl.config.algorithm import AlgorithmConfig, Function, FunctionConfig
from vlrl.config.section import Section
from vlrl.errors import ConfigError
from vlrl.registry import resolve
from vlrl.registry.bound import Bound, bind

DPO, BRADLEY_TERRY = FunctionConfig(name="dpo"), FunctionConfig(name="bradley_terry")
NOT_READ = (
    "preset", "credit", "normalize", "aggregation", "loss", "kl_coef", "entropy_coef", "entropy_adaptive",
    "selections", "teacher", "critic",
)  # fmt: skip
"""Keys of `algorithm` that preference learning does not read."""

PAIRED, UNPAIRED = ("chosen_ratios", "rejected_ratios"), ("ratios",)
SCORED = ("chosen_scores", "rejected_scores")
"""What a loss is called with. It is one of completions with a label if it names `desirable`, and one of a
reward model if its first parameter is `chosen_scores`."""
PAIRED_CONTEXT, UNPAIRED_CONTEXT = ("chosen_lengths", "rejected_lengths"), ("desirable", "kl")
SCORED_CONTEXT = ("margins",)
"""What it may ask for by name."""


class PreferencesConfig(Section):
    """Preference learning: `vlrl dpo` and `reward-model` on rows, `vlrl train` on pairs of its own groups."""

    loss: Function = DPO
    """The loss of a pair: dpo (label_smoothing), ipo (average), or of one completion with a label: kto
    (desirable_weight, undesirable_weight); of a reward model: bradley_terry (center_coef); or
    ./file.py:function."""
    beta: float = Field(0.1, gt=0, allow_inf_nan=False)
    """β, how strongly the policy is held to the reference: a completion's implicit reward is
    β · log π / π_ref. IPO's τ. (TRL's beta of GRPO is algorithm.kl_coef.)"""
    reference: Literal["start", "none"] = "start"
    """start: the model at model.path, a frozen copy, or with lora the model with its adapters off. none:
    π_ref is uniform and costs nothing (TRL's reference_free)."""
    margin: str | None = None
    """Column with each pair's margin, a number of at least 0: how much more the chosen completion is to
    score. Only a reward model's loss reads it."""
    batch_size: int = Field(32, ge=1)
    """Rows per step of `vlrl dpo` and `vlrl reward-model`."""

    @property
    def is_unpaired(self) -> bool:
        """Whether the loss is one of single completions with a label."""
        return self.loss.name != DPO.name and "desirable" in _parameters(self.loss.name)

    @property
    def is_scored(self) -> bool:
        """Whether the loss is one of scores, which a scalar head gives: that of a reward model."""
        return self.loss.name != DPO.name and _parameters(self.loss.name)[:1] == SCORED[:1]

    @property
    def has_reference(self) -> bool:
        """Whether the starting model's log-probabilities are computed, too."""
        return self.reference == "start" and not self.is_scored

    @property
    def reward_scale(self) -> float:
        """A completion's reward, by its log-ratio or score."""
        return 1.0 if self.is_scored else self.beta

    @model_validator(mode="after")
    def _loss_reads_its_options(self) -> PreferencesConfig:
        if self.loss == DPO:  # this must not import a framework: most configs are such
            if self.margin is not None:
                raise ValueError(_no_effect("margin", self))
            return self
        try:
            bound = bound_preference(self)
        except ConfigError as error:
            raise ValueError(f"loss: {error}") from error
        self._try(bound)
        unread = {
            "beta": "beta" not in bound.read,
            "reference": self.is_scored,
            "margin": "margins" not in bound.wanted,
        }
        for key in (key for key, is_unread in unread.items() if is_unread):
            if getattr(self, key) != type(self).model_fields[key].default:
                raise ValueError(_no_effect(key, self))
        return self

    def require_default(self, algorithm: AlgorithmConfig, temperature: float) -> None:
        """Raise ValueError for what is set and a loss of pairs would not read.

        Args:
            algorithm: the section.
            temperature: rollout.temperature, which a reward model does not use.
        """
        if self.is_scored and temperature != 1.0:
            raise ValueError(
                f"rollout.temperature={temperature:g} has no effect with preferences.loss={self.loss.name}: "
                "a reward model has no logits to divide; leave it out"
            )
        for key in NOT_READ:
            value = getattr(algorithm, key)
            default = AlgorithmConfig.model_fields[key].get_default(call_default_factory=True)
            if value != default:
                raise ValueError(
                    f"algorithm.{key}={getattr(value, 'name', value)} has no effect with preferences, whose "
                    f"loss is preferences.loss={self.loss.name}; leave it out, or set preferences=null"
                )

    def _try(self, bound: Bound) -> None:
        """Raise ValueError for an option whose value the loss refuses."""
        import torch

        one = torch.ones(1)
        context: dict[str, Any] = {name: one for name in (*PAIRED_CONTEXT, *SCORED_CONTEXT)}
        context |= {"desirable": one > 0, "kl": 0.0}
        try:
            bound(*[one] * len(UNPAIRED if self.is_unpaired else PAIRED), **context)
        except (TypeError, ValueError) as error:
            raise ValueError(f"loss.options={self.loss.options} of {self.loss.name!r}: {error}") from error

    @model_validator(mode="after")
    def _kl_has_other_rows(self) -> PreferencesConfig:
        if self.batch_size == 1 and self.is_unpaired and "kl" in bound_preference(self).wanted:
            raise ValueError(
                f"batch_size=1 with loss={self.loss.name}: its KL is estimated with the completions of other "
                "rows of the step; set batch_size=2 or more"
            )
        return self


def bound_preference(options: PreferencesConfig) -> Bound:
    """The loss with its options: a function of [M] chosen and rejected log-ratios, or of [M] log-ratios.

    Raises:
        ConfigError: as `vlrl.registry.bound.bind` does.
    """
    given: tuple[str, ...] = PAIRED
    context: tuple[str, ...] = PAIRED_CONTEXT
    if options.is_scored:
        given, context = SCORED, SCORED_CONTEXT
    elif options.is_unpaired:
        given, context = UNPAIRED, UNPAIRED_CONTEXT
    return bind(
        "preferences",
        options.loss.name,
        options.loss.options,
        given=given,
        shared={"beta": options.beta},
        context=context,
    )


def _parameters(name: str) -> tuple[str, ...]:
    """The names of a loss's parameters, in their order."""
    function = resolve("preferences", name)
    return tuple(inspect.signature(function).parameters) if callable(function) else ()  # refused by `bind`


def _no_effect(key: str, options: PreferencesConfig) -> str:
    others = "bradley_terry" if key == "margin" else "dpo, ipo or kto"
    return (
        f"{key}={getattr(options, key)} has no effect with loss={options.loss.name}; leave it out, or set "
        f"loss={others}"
    )
