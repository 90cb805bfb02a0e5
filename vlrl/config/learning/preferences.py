"""The section of preference learning: which loss of a pair, or of a completion with a label."""

from __future__ import annotations

import inspect
from typing import Literal

from pydantic import Field, model_validator

from vlrl.config.algorithm import AlgorithmConfig, Function, FunctionConfig
from vlrl.config.section import Section
from vlrl.errors import ConfigError
from vlrl.registry import BUILT_IN, resolve
from vlrl.registry.bound import Bound, bind
from vlrl.registry.signature import named

DPO = FunctionConfig(name="dpo")
NOT_READ = (
    "preset", "credit", "normalize", "aggregation", "loss", "kl_coef", "entropy_coef", "entropy_adaptive",
    "selections", "teacher", "critic",
)  # fmt: skip
"""Keys of `algorithm` that pairs do without."""

PAIRED, UNPAIRED = ("chosen_ratios", "rejected_ratios"), ("ratios",)
"""What a loss is called with; it is one of completions with a label if it names `desirable`."""
PAIRED_CONTEXT, UNPAIRED_CONTEXT = ("chosen_lengths", "rejected_lengths"), ("desirable", "kl")
"""What it may ask for by name."""


class PreferencesConfig(Section):
    """Preference learning: `vlrl dpo` on rows of pairs or labels, `vlrl train` on pairs of its own groups."""

    loss: Function = DPO
    """The loss of a pair: dpo (label_smoothing), ipo (average), or of one completion with a label: kto
    (desirable_weight, undesirable_weight); or ./file.py:function."""
    beta: float = Field(0.1, gt=0, allow_inf_nan=False)
    """β, how strongly the policy is held to the reference: a completion's implicit reward is
    β · log π / π_ref. IPO's τ. (TRL's beta of GRPO is algorithm.kl_coef.)"""
    reference: Literal["start", "none"] = "start"
    """start: the model at model.path, a frozen copy, or with lora the model with its adapters off. none:
    π_ref is uniform and costs nothing (TRL's reference_free)."""
    batch_size: int = Field(32, ge=1)
    """Rows per step of `vlrl dpo`."""

    @property
    def is_unpaired(self) -> bool:
        """Whether the loss is one of single completions with a label."""
        return self.loss.name != DPO.name and _is_unpaired(self.loss.name)

    @model_validator(mode="after")
    def _loss_reads_its_options(self) -> PreferencesConfig:
        if self.loss == DPO:
            return self  # this must not import a framework: most configs are such
        try:
            bound = bound_preference(self)
        except ConfigError as error:
            raise ValueError(f"loss: {error}") from error
        self._try(bound)
        if self.beta != type(self).model_fields["beta"].default and "beta" not in bound.read:
            raise ValueError(
                f"beta={self.beta} has no effect with loss={self.loss.name}; leave it out, or set "
                f"loss={' or '.join(BUILT_IN['preferences'])}"
            )
        return self

    def require_default(self, algorithm: AlgorithmConfig) -> None:
        """Raise ValueError for a key of `algorithm` that is set and that a loss of pairs would not read."""
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
        context = {name: one for name in PAIRED_CONTEXT} | {"desirable": one > 0, "kl": 0.0}
        try:
            bound(*[one] * len(UNPAIRED if self.is_unpaired else PAIRED), **context)
        except (TypeError, ValueError) as error:
            raise ValueError(f"loss.options={self.loss.options}: {self.loss.name!r} says: {error}") from error

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
    unpaired = _is_unpaired(options.loss.name)
    return bind(
        "preferences",
        options.loss.name,
        options.loss.options,
        given=UNPAIRED if unpaired else PAIRED,
        shared={"beta": options.beta},
        context=UNPAIRED_CONTEXT if unpaired else PAIRED_CONTEXT,
    )


def _is_unpaired(name: str) -> bool:
    function = resolve("preferences", name)
    if not callable(function):
        return False  # which `bind` refuses
    return "desirable" in named(list(inspect.signature(function).parameters.values()))[0]
