"""The algorithm's section: an advantage, a loss, and what stands around them; presets set several at once."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from vlrl.config.asynchronous import CorrectionConfig
from vlrl.config.paths import absolute
from vlrl.config.presets import PRESETS, expanded
from vlrl.config.section import Name, Section
from vlrl.config.teacher import TeacherConfig
from vlrl.errors import ConfigError
from vlrl.registry import BUILT_IN, resolve
from vlrl.registry.bound import Bound, bind
from vlrl.registry.signature import named


def _absolute_file(name: str) -> str:
    """./file.py:function as seen from any process: ranks may have another working folder."""
    path, is_file, attribute = name.rpartition(".py:")
    return f"{absolute(Path(path + '.py'))}:{attribute}" if is_file else name


FunctionName: TypeAlias = Annotated[Name, AfterValidator(_absolute_file)]


class FunctionConfig(Section):
    """A function of the algorithm; its name alone stands for {name: …}."""

    name: FunctionName
    """A registered one or ./file.py:function; from Python, a function."""
    options: dict[str, Any] = Field(default_factory=dict)
    """Passed to it by name."""


Function: TypeAlias = Annotated[
    FunctionConfig, BeforeValidator(lambda value: {"name": value} if isinstance(value, str) else value)
]

EPISODE, PPO = FunctionConfig(name="episode"), FunctionConfig(name="ppo")


class AlgorithmConfig(Section):
    """GRPO and its relatives. A name alone, algorithm=gspo, stands for {preset: gspo}."""

    preset: str | None = None
    """Sets the keys of a published algorithm; those that stand beside it override it. One of grpo, dr_grpo,
    dapo, gspo, gspo_token, gmpo, cispo, sapo, rloo, opo, gpg, reinforce_pp, reinforce_pp_baseline, gdpo,
    pass_at_k and raft. `vlrl config show` prints what it sets. Null changes nothing."""
    credit: Function = EPISODE
    """The advantage of each turn. episode: the whole episode's. discounted, turn_groups: that of the rewards
    still to come, among all turns of the group, or among those of the same number. state_groups: GiGPO's sum
    of the episode's and of one among all turns of the group that were taken in the same state. rloo,
    opo, reward, gdpo (rewards), pass_at_k (k, reward, threshold), best_of (num_best, min_reward), or
    ./file.py:function of a group's scored trajectories that returns a number, or one a turn, for each."""
    scale_by_std: bool = True
    """Divide advantages by the group's standard deviation (GRPO); false is Dr. GRPO."""
    discount: float = Field(1.0, ge=0, le=1)
    """γ per turn, for the values of credit by turn; with 0 a turn gets only its own reward."""
    state_weight: float = Field(1.0, ge=0)
    """ω, weight of the advantage among equal states in state_groups."""
    normalize: Literal["none", "batch"] = "none"
    """batch: advantages have mean 0 and deviation 1 over all trained tokens of a step (REINFORCE++, GDPO)."""
    masks: list[Name] = Field(default_factory=list)
    """Tokens left out of the loss: truncated (actions cut at rollout.max_tokens), invalid (actions that the
    environment could not read), all_but_last (turns before the last), or ./file.py:function of a trajectory
    that returns one bool array a ledger. Advantages are computed before."""
    aggregation: Literal["token", "sequence", "constant"] = "token"
    """Mean over all tokens of the batch (DAPO), mean over sequences of token means (GRPO), or sum over
    tokens divided by num_sequences × max_tokens (Dr. GRPO), and × episodes.max_turns in environments."""
    loss: Function = PPO
    """The policy's loss of each token: ppo (the clipped ratio), policy_gradient, gspo, gmpo (low, high),
    cispo (largest, smallest), sapo (tau_pos, tau_neg), or ./file.py:function."""
    clip_low: float = Field(0.2, ge=0, lt=1)
    """Lower trust bound of the probability ratio, for a loss that names it, as ppo does."""
    clip_high: float = Field(0.28, ge=0)
    """Upper trust bound (DAPO's clip-higher), likewise."""
    dual_clip: float | None = Field(3.0, gt=1)
    """Ratio above which a token with a negative advantage has no gradient, since PPO has no upper bound
    there (dual-clip PPO, arXiv 1912.09729; verl's clip_ratio_c). Null: no bound; correction.kind=dppo has
    a cap."""
    kl_coef: float = Field(0.0, ge=0)
    """Weight of KL to the starting model; above 0 the trainer holds a frozen reference copy."""
    kl_estimator: FunctionName = "k3"
    """How it is estimated from a token: k3 (GRPO), k2, k1, or ./file.py:function. The file
    `vlrl.algorithm.regularizers` says what each gradient is. The metric policy/kl_reference is k3 always."""
    entropy_coef: float = Field(0.0, ge=0)
    """Weight of the policy's entropy in the objective (A3C, arXiv 1602.01783), so that it goes on exploring;
    above 0 groups whose rewards are equal are trained too."""
    teacher: TeacherConfig | None = None
    """Distils another model into the policy; null is no teacher. With one, groups whose rewards are equal are
    trained too."""
    num_minibatches: int = Field(1, ge=1)
    """Optimizer steps per rollout batch; must divide rollout.prompts_per_step."""
    correction: CorrectionConfig = CorrectionConfig()

    @property
    def trains_every_group(self) -> bool:
        """Whether tokens without an advantage have a gradient too: of KL, of entropy, or a teacher's."""
        return self.kl_coef > 0 or self.entropy_coef > 0 or self.teacher is not None

    @model_validator(mode="before")
    @classmethod
    def _preset(cls, given: Any) -> Any:
        if isinstance(given, str):
            given = {"preset": given}
        if not isinstance(given, Mapping) or (name := given.get("preset")) is None:
            return given
        if name not in PRESETS:
            near = difflib.get_close_matches(str(name), PRESETS, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(PRESETS)}"
            raise ValueError(f"no preset is named {name!r}; {hint}")
        return expanded(PRESETS[name].keys, given)

    @model_validator(mode="after")
    def _functions_read_their_options(self) -> AlgorithmConfig:
        for role, shared in SHARED.items():
            chosen: FunctionConfig = getattr(self, role)
            own = {key: getattr(self, key) for key in shared if getattr(self, key) != _default(key)}
            if chosen == _default(role) and own.keys() <= READ_BY_DEFAULT[role]:
                continue  # this must not import a framework: most configs are such
            try:
                read = (bound_loss if role == "loss" else bound_credit)(self).read
            except ConfigError as error:
                raise ValueError(f"{role}: {error}") from error
            for key in own.keys() - read:
                by = [name for name in BUILT_IN[KINDS[role]] if key in _reads(role, name)]
                raise ValueError(
                    f"{key}={own[key]} has no effect with {role}={chosen.name}{_origin(self)}; leave it out "
                    f"({_default(key)}), or set {role}={' or '.join(by)}"
                )
        return self

    @model_validator(mode="after")
    def _estimator(self) -> AlgorithmConfig:
        if self.kl_estimator == _default("kl_estimator"):
            return self
        if self.kl_coef == 0:
            raise ValueError(
                f"kl_estimator={self.kl_estimator} has no effect with kl_coef=0, without a reference; "
                "set kl_coef, or leave it out (k3)"
            )
        try:
            bound_kl(self)
        except ConfigError as error:
            raise ValueError(f"kl_estimator: {error}") from error
        return self

    @model_validator(mode="after")
    def _combinations(self) -> AlgorithmConfig:
        if self.correction.kind == "dppo" and self.loss.name != "ppo":
            raise ValueError(
                f"correction.kind=dppo has a loss of its own in place of loss={self.loss.name}; set "
                "correction.kind=truncated, or leave loss out"
            )
        if self.loss.name == "policy_gradient" and self.num_minibatches > 1:
            raise ValueError(
                f"num_minibatches={self.num_minibatches} with loss=policy_gradient: it has no trust region, "
                "so a step's later updates would be off-policy; set num_minibatches=1, or loss=ppo"
            )
        return self


KINDS = {"credit": "advantages", "loss": "losses"}
SHARED = {
    "credit": ("scale_by_std", "discount", "state_weight"),
    "loss": ("clip_low", "clip_high", "dual_clip"),
}
"""Key of a function → keys beside it that it gets if its signature names them."""
READ_BY_DEFAULT = {"credit": {"scale_by_std"}, "loss": {"clip_low", "clip_high", "dual_clip"}}
LOSS_CONTEXT = ("sequence_sums", "sampler_logprobs")


def bound_credit(options: AlgorithmConfig) -> Bound:
    """The advantage with its options: a function of a group's scored trajectories.

    Raises:
        ConfigError: as `vlrl.registry.bound.bind` does.
    """
    shared = {
        "scale_by_std": options.scale_by_std,
        "discount": options.discount,
        "state_weight": options.state_weight,
    }
    chosen = options.credit
    return bind("advantages", chosen.name, chosen.options, given=("trajectories",), shared=shared)


def bound_loss(options: AlgorithmConfig) -> Bound:
    """The loss with its options: a function of [M] trainer_logprobs, anchor_logprobs and advantages.

    Raises:
        ConfigError: as `vlrl.registry.bound.bind` does.
    """
    shared = {
        "clip_low": options.clip_low,
        "clip_high": options.clip_high,
        "dual_clip": options.dual_clip,
    }
    given = ("trainer_logprobs", "anchor_logprobs", "advantages")
    chosen = options.loss
    return bind("losses", chosen.name, chosen.options, given=given, shared=shared, context=LOSS_CONTEXT)


def bound_kl(options: AlgorithmConfig) -> Bound:
    """The estimate of KL(policy || reference): a function of [M] trainer_logprobs and reference_logprobs.

    Raises:
        ConfigError: as `vlrl.registry.bound.bind` does.
    """
    given = ("trainer_logprobs", "reference_logprobs")
    return bind("regularizers", options.kl_estimator, {}, given=given, shared={})


def _origin(options: AlgorithmConfig) -> str:
    """Where a function that the config does not name may be from."""
    return f" (algorithm.preset={options.preset})" if options.preset else ""


def _default(key: str) -> Any:
    return AlgorithmConfig.model_fields[key].default


def _reads(role: str, name: str) -> frozenset[str]:
    """The shared keys that a function names."""
    names, _ = named(list(inspect.signature(resolve(KINDS[role], name)).parameters.values()))
    return names & frozenset(SHARED[role])
