"""The sections of the config tree about tokens that another policy generated than the one that learns."""

from __future__ import annotations

import inspect
from typing import Any, Literal

from pydantic import Field, model_validator

from vlrl.config.paths import FunctionName
from vlrl.config.section import Name, Section
from vlrl.errors import ConfigError
from vlrl.registry import BUILT_IN, resolve
from vlrl.registry.bound import Bound, bind
from vlrl.registry.signature import named


class CorrectionConfig(Section):
    """How the difference between the policy that generated a token and the trained one is corrected.

    π_b generated the token (its recorded log-probability), π_p is the proximal policy, which the trust
    region is around, π_θ the one that learns; ρ = π_p / π_b. `vlrl.algorithm.corrections` has the formulas
    and their papers. In every built-in kind the weight of a single token is bounded: that of clipped ratios
    by algorithm.dual_clip.
    """

    kind: FunctionName = "auto"
    """auto: truncated with model.dtype=bfloat16, where rounding alone makes ρ other than 1, else none. none:
    PPO's clipped ratio π_θ / π_b. The others clip π_θ / π_p and weight the token by ρ: at most `cap`, which
    is large (decoupled PPO) or small (truncated importance sampling), 0 above `cap` (masked importance
    sampling), or 0 outside [icepop_low, icepop_high] (IcePop). dppo: the ratio π_θ / π_b, at most `cap`,
    without clipping, but no token whose probability has moved by more than dppo_threshold in the direction
    of its advantage. uncorrected: π_θ / π_p is clipped and ρ ignored, as if π_p had generated the token; to
    compare with. Or ./file.py:function, see docs/algorithms.md."""
    options: dict[str, Any] = Field(default_factory=dict)
    """Passed by name to a function of your own."""
    level: Literal["token", "sequence"] = "token"
    """ρ in truncated and masked: the token's own, or the product over all trained tokens of its ledger."""
    cap: float | None = Field(None, ge=1)
    """Largest weight; null: 2 for truncated and masked, 20 for decoupled and dppo; .inf: no bound."""
    icepop_low: float = Field(0.5, gt=0, le=1)
    """Lowest ρ that is trained, α."""
    icepop_high: float = Field(5.0, ge=1)
    """Highest ρ that is trained, β."""
    dppo_threshold: float = Field(0.2, gt=0, le=1)
    """Most that a token's probability may have moved, δ."""
    proximal: Literal["recomputed", "interpolated"] = "recomputed"
    """π_p: of the weights before the step's first update, which costs a forward pass where num_minibatches is
    above 1; or between π_b and π_θ by the token's age, without one (A-3PO)."""
    staleness_power: float = Field(0.0, ge=0)
    """A token generated d updates ago counts (1 + d)^-power; 0 is off."""

    @property
    def has_proximal(self) -> bool:
        """Whether the trust region is around a proximal policy: of a function that asks for it by name."""
        return self.kind not in PLAIN and "proximal_logprobs" in bound_correction(options=self).wanted

    @property
    def recomputes(self) -> bool:
        """Whether the weights before a step's first update are asked about the later ones' tokens."""
        return self.proximal == "recomputed" and self.has_proximal

    @property
    def replaces_loss(self) -> bool:
        """Whether it has a loss of its own: a function that asks for the log-probabilities that learn."""
        return self.kind not in PLAIN and "trainer_logprobs" in bound_correction(options=self).wanted

    @model_validator(mode="after")
    def _read(self) -> CorrectionConfig:
        own = {key: getattr(self, key) for key in CORRECTION_KEYS if getattr(self, key) != _default(key)}
        if self.kind in PLAIN and not own and not self.options and self.proximal == "recomputed":
            return self  # this must not import a framework: most configs are such
        try:
            bound = bound_correction(self)
        except ConfigError as error:
            raise ValueError(f"kind: {error}") from error
        for key in own.keys() - bound.read:
            by = [name for name in BUILT_IN["corrections"] if key in _reads(name)]
            raise ValueError(
                f"{key}={own[key]} has no effect with kind={self.kind}; leave it out ({_default(key)}), or "
                f"set kind={' or '.join(by)}"
            )
        if self.proximal == "interpolated" and "proximal_logprobs" not in bound.wanted:
            raise ValueError(
                f"proximal=interpolated has no effect with kind={self.kind}, which has no proximal policy; "
                "set kind=decoupled, or leave proximal out"
            )
        return self


PLAIN = ("auto", "none")
"""Kinds without a weight; auto is left where no config has said the model's dtype."""
CORRECTION_KEYS = ("level", "cap", "icepop_low", "icepop_high", "dppo_threshold")
"""Keys beside `kind` that its function gets if its signature names them."""
CORRECTION_CONTEXT = (
    "proximal_logprobs",
    "trainer_logprobs",
    "advantages",
    "token_staleness",
    "sequence_sums",
)


def bound_correction(options: CorrectionConfig) -> Bound:
    """The correction with its options: a function of [M] sampler_logprobs.

    It returns (weights [M] without gradient, limited [M] bool). What it asks for by name says more: with
    proximal_logprobs the trust region is around that policy, else around the one that generated the token;
    with trainer_logprobs, which have a gradient, it returns (loss [M], stopped [M] bool, limited [M] bool) in
    place of algorithm.loss.

    Raises:
        ConfigError: as `vlrl.registry.bound.bind` does.
    """
    shared: dict[str, Any] = {
        "level": options.level,
        "cap": options.cap,
        "icepop_low": options.icepop_low,
        "icepop_high": options.icepop_high,
        "dppo_threshold": options.dppo_threshold,
    }
    for key in sorted(shared.keys() & options.options.keys()):
        raise ConfigError(f"{key!r} is not one of kind's options but a key beside it; move it out of options")
    if options.cap is None:  # the function's own default
        del shared["cap"]
    name = "none" if options.kind == "auto" else options.kind
    return bind(
        "corrections",
        name,
        options.options,
        given=("sampler_logprobs",),
        shared=shared,
        context=CORRECTION_CONTEXT,
    )


def _default(key: str) -> Any:
    return CorrectionConfig.model_fields[key].default


def _reads(name: str) -> frozenset[str]:
    """The keys beside `kind` that a function names."""
    names, _ = named(list(inspect.signature(resolve("corrections", name)).parameters.values()))
    return names & frozenset(CORRECTION_KEYS)


class FilterConfig(Section):
    """Which groups are trained."""

    name: Name
    """zero_variance (reward), failed, length (min_tokens, max_tokens), truncated (max_share), reward_range
    (lowest, highest, reward; reward is total or the name of a part such as the accuracy), or
    ./file.py:function of a `vlrl.types.Group` that says whether to keep it."""
    options: dict[str, Any] = Field(default_factory=dict)
    """Passed to the filter by name."""


class ReplayConfig(Section):
    """Earlier groups in place of those without a signal (VL-Rethinker's SSR, arXiv 2504.08837)."""

    size: int = Field(64, ge=1)
    """Samples whose groups are kept, the newest; with their images, in memory and in checkpoints."""
    share: float = Field(0.5, gt=0, le=1)
    """Largest share of a step's samples that are replayed."""
    max_staleness: int = Field(4, ge=1)
    """Most updates between the weights that generated a group's oldest token and those that train it."""
    power: float = Field(1.0, ge=0)
    """α: a group is chosen in proportion to |A|^α, its mean absolute advantage; 0: all alike."""


class BatchConfig(Section):
    """Which groups fill a batch; those that a filter drops are replaced by the next samples' (DAPO)."""

    filters: list[FilterConfig] = Field(default_factory=list)
    """A group is trained if all filters keep it, and counted under the first that does not. Without
    filters every group is trained; one without advantages costs nothing and has no effect."""
    over_sampling: float = Field(1.0, ge=1, le=8)
    """Groups generated at first, as a multiple of what the batch needs, where filters drop some. What is left
    over waits for the next batch, or is generated again if it is then too old: in sync mode it always is."""
    max_dropped_share: float = Field(0.9, ge=0, lt=1)
    """If a larger share of the groups generated for a batch is dropped, the run ends."""
    replay: ReplayConfig | None = None
    """Trains earlier groups again where a step's own have no advantages; null: never. Their tokens are stale,
    so a loss without a ratio needs algorithm.correction."""

    @model_validator(mode="after")
    def _with_filters(self) -> BatchConfig:
        if self.over_sampling > 1 and not self.filters:
            raise ValueError(
                f"over_sampling={self.over_sampling:g} has no use without filters: nothing would drop the "
                "additional groups; set batch.filters, or leave over_sampling out"
            )
        return self


class AsyncConfig(Section):
    """Whether the generator generates while the trainer steps."""

    mode: Literal["sync", "async"] = "sync"
    """sync: trainer and engines take turns, and every token is trained under the weights it was generated
    with. async: groups are generated all the time; batches still have their samples in the order of the
    data."""
    pipeline_depth: int = Field(1, ge=1)
    """Number of batches whose groups may be generated and not yet trained, in async mode."""
    max_staleness: int = Field(4, ge=0)
    """Most updates between the weights that generated a group's oldest token and those that it is trained
    under, in async mode: an older group is generated again. With 0 the two take turns. Groups of at most so
    many batches and one more may be open, so a larger pipeline_depth is refused."""

    @model_validator(mode="after")
    def _slots_that_can_be_used(self) -> AsyncConfig:
        if self.streams and self.pipeline_depth > self.max_staleness + 1:
            raise ValueError(
                f"pipeline_depth={self.pipeline_depth} with max_staleness={self.max_staleness}: a group that "
                f"is generated more than {self.max_staleness} updates ahead is too stale, so slots beyond "
                f"{self.max_staleness + 1} batches would never be used; lower pipeline_depth, or raise "
                "max_staleness"
            )
        return self

    @property
    def streams(self) -> bool:
        """Whether mode is async."""
        return self.mode == "async"
