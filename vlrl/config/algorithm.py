"""The algorithm's section: an advantage, a loss, and what stands around them; presets set several at once."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BeforeValidator, Field, model_validator

from vlrl.config.asynchronous import CorrectionConfig
from vlrl.config.learning.critic import CriticConfig, require_fitting
from vlrl.config.learning.regularizers import AdaptiveEntropyConfig, AdaptiveKLConfig, ReferenceConfig
from vlrl.config.learning.teacher import TeacherConfig
from vlrl.config.paths import FunctionName
from vlrl.config.presets import PRESETS, expanded
from vlrl.config.section import Name, Section, named_list
from vlrl.errors import ConfigError
from vlrl.registry import BUILT_IN, resolve
from vlrl.registry.bound import Bound, bind
from vlrl.registry.signature import named


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
    dapo, gspo, gspo_token, gmpo, cispo, sapo, rloo, remax, opo, gpg, reinforce_pp, reinforce_pp_baseline,
    gdpo, pass_at_k, raft and ppo. `vlrl config show` prints what it sets. Null changes nothing."""
    credit: Function = EPISODE
    """The advantage of each turn. episode: the whole episode's. discounted, turn_groups: that of the rewards
    still to come, among all turns of the group, or among those of the same number. state_groups: GiGPO's sum
    of the episode's and of one among all turns of the group that were taken in the same state. remax:
    against a greedy episode of the same sample, which is generated beside the group. rloo, opo, reward, gdpo
    (rewards), pass_at_k (k, reward, threshold), best_of (num_best, min_reward), or ./file.py:function of a
    group's scored trajectories that returns a number, or one a turn, for each. gae (lam): of the rewards and
    a critic's values, or ./file.py:function that names `values`."""
    critic: CriticConfig | None = None
    """Trains a critic beside the policy, for a credit that takes its values; null is none."""
    scale_by_std: bool = True
    """Divide advantages by the group's standard deviation (GRPO); false is Dr. GRPO."""
    discount: float = Field(1.0, ge=0, le=1)
    """γ per turn, for the values of credit by turn; with 0 a turn gets only its own reward. Of gae it is per
    step, a token or a turn (critic.level)."""
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
    kl_adaptive: AdaptiveKLConfig | None = None
    """Adapts kl_coef so that the KL stays near a target; null: it is constant."""
    kl_in: Literal["loss", "reward"] = "loss"
    """loss: a penalty of each token (GRPO). reward: -kl_coef times the KL of a token and of all that follow
    in its ledger is added to its advantage, by log π_b - log π_ref of the tokens as they were generated
    (REINFORCE++, RLHF's PPO). docs/algorithms.md says how that meets baselines and `normalize`."""
    kl_estimator: FunctionName = "k3"
    """How it is estimated from a token: k3 (GRPO), k2, k1, k3_plus, k3_unbiased, or ./file.py:function.
    `vlrl.algorithm.regularizers` says what each gradient is. The metric policy/kl_reference is k3 always."""
    entropy_coef: float = Field(0.0, ge=0)
    """Weight of the policy's entropy in the objective (A3C, arXiv 1602.01783), so that it goes on exploring;
    above 0 groups whose rewards are equal are trained too."""
    selections: Annotated[list[FunctionConfig], BeforeValidator(named_list)] = Field(default_factory=list)
    """Tokens that the policy's loss leaves out or penalises, chosen among all tokens of an update:
    top_entropy (share), clip_cov (share, low, high), kl_cov (share, coef), or ./file.py:function. It costs a
    forward pass of the policy."""
    entropy_adaptive: AdaptiveEntropyConfig | None = None
    """Adapts entropy_coef so that the entropy stays above a target; null: it is constant."""
    reference: ReferenceConfig = ReferenceConfig()
    teacher: TeacherConfig | None = None
    """Distils another model into the policy; null is no teacher. With one, groups whose rewards are equal are
    trained too."""
    num_minibatches: int = Field(1, ge=1)
    """Optimizer steps per rollout batch; must divide rollout.prompts_per_step."""
    correction: CorrectionConfig = CorrectionConfig()

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
        reads_values = self.credit != EPISODE and takes_values(self.credit.name)
        if reads_values:
            import numpy as np  # here: a command that only reads a config spends a tenth of its time on it

            one = np.zeros(1)
            try:
                bound_credit(self)(one, one)
            except (TypeError, ValueError) as error:
                options = self.credit.options
                raise ValueError(f"credit.options={options} of {self.credit.name!r}: {error}") from error
        require_fitting(self, reads_values)
        return self

    @model_validator(mode="after")
    def _estimator(self) -> AlgorithmConfig:
        if self.kl_estimator == _default("kl_estimator"):
            return self
        if self.kl_coef == 0:
            raise ValueError(
                f"kl_estimator={self.kl_estimator} has no effect with kl_coef=0, which needs no reference "
                "model; set kl_coef, or leave kl_estimator out (k3)"
            )
        try:
            bound_kl(self)
        except ConfigError as error:
            raise ValueError(f"kl_estimator: {error}") from error
        return self

    @model_validator(mode="after")
    def _kl_has_a_reference(self) -> AlgorithmConfig:
        if self.kl_coef > 0:
            return self
        for key, is_set in (("kl_adaptive", self.kl_adaptive), ("reference.every", self.reference.every)):
            if is_set is not None:
                raise ValueError(
                    f"{key} has no effect with kl_coef=0, which needs no reference model; set kl_coef, or "
                    "leave it out"
                )
        return self

    @model_validator(mode="after")
    def _kl_in_reward(self) -> AlgorithmConfig:
        if self.kl_in == "loss":
            return self
        if self.kl_coef == 0:
            raise ValueError("kl_in=reward has no effect with kl_coef=0; set kl_coef, or leave kl_in out")
        if self.kl_estimator not in (_default("kl_estimator"), "k1"):
            raise ValueError(
                f"kl_estimator={self.kl_estimator} with kl_in=reward: in the reward only k1, "
                "log π - log π_ref, gives the KL's gradient; leave kl_estimator out, or set kl_in=loss"
            )
        if self.normalize == "batch" and self.num_minibatches > 1:
            raise ValueError(
                f"num_minibatches={self.num_minibatches} with kl_in=reward and normalize=batch: the trainer "
                "computes the KL one minibatch at a time, so each minibatch would be normalised by itself; "
                "set num_minibatches=1, or kl_in=loss"
            )
        return self

    @model_validator(mode="after")
    def _selections_are_functions(self) -> AlgorithmConfig:
        try:
            bound_selections(self)
        except ConfigError as error:
            raise ValueError(f"selections: {error}") from error
        names = [chosen.name for chosen in self.selections]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"selections: {name} is listed twice; remove one")
        return self

    @model_validator(mode="after")
    def _combinations(self) -> AlgorithmConfig:
        if self.loss.name != "ppo" and self.correction.replaces_loss:
            raise ValueError(
                f"correction.kind={self.correction.kind} is a loss itself and replaces "
                f"loss={self.loss.name}; set correction.kind=truncated, or leave loss out"
            )
        if self.loss.name == "policy_gradient" and self.num_minibatches > 1:
            raise ValueError(
                f"num_minibatches={self.num_minibatches} with loss=policy_gradient: it has no trust region, "
                "so a step's later updates would be off-policy; set num_minibatches=1, or loss=ppo"
            )
        return self

    @property
    def trains_all_groups(self) -> bool:
        """Whether groups without advantages are trained too, for a term that is not the rewards'."""
        terms = (self.kl_coef > 0, self.entropy_coef > 0, self.entropy_adaptive, self.teacher, self.critic)
        return any(terms)

    @property
    def has_greedy_baseline(self) -> bool:
        """Whether a greedy episode of each sample is played beside its group: the advantage asks for it."""
        return self.credit != EPISODE and "greedy" in bound_credit(options=self).wanted

    @property
    def surveys(self) -> bool:
        """Whether a step looks at all its tokens before it trains the first."""
        return self.changes_advantages or bool(self.selections)

    @property
    def changes_advantages(self) -> bool:
        """Whether the ranks make advantages of what they know: a critic's values, or the KL."""
        return self.kl_in == "reward" or self.critic is not None


KINDS = {"credit": "advantages", "loss": "losses"}
SHARED = {
    "credit": ("scale_by_std", "discount", "state_weight"),
    "loss": ("clip_low", "clip_high", "dual_clip"),
}
"""Key of a function → keys beside it that it gets if its signature names them."""
READ_BY_DEFAULT = {"credit": {"scale_by_std"}, "loss": {"clip_low", "clip_high", "dual_clip"}}
CREDIT_CONTEXT = ("greedy",)
LOSS_CONTEXT = ("sequence_sums", "sampler_logprobs")
KL_CONTEXT = ("sampler_logprobs",)
SELECTION_CONTEXT = ("seed",)


def bound_credit(options: AlgorithmConfig) -> Bound:
    """The advantage with its options: a function of a group's scored trajectories.

    One that asks for `greedy` by name is given the sample's greedy episode, which is played for it. One that
    takes values is a function of [n] rewards and [n] values of an episode's steps.

    Raises:
        ConfigError: as `vlrl.registry.bound.bind` does.
    """
    shared = {
        "scale_by_std": options.scale_by_std,
        "discount": options.discount,
        "state_weight": options.state_weight,
    }
    chosen = options.credit
    given = ("rewards", "values") if takes_values(chosen.name) else ("trajectories",)
    return bind("advantages", chosen.name, chosen.options, given=given, shared=shared, context=CREDIT_CONTEXT)


def takes_values(credit: str) -> bool:
    """Whether an advantage is one of a critic's values, which it then names.

    Raises:
        ConfigError: as `vlrl.registry.resolve` does.
    """
    function = resolve("advantages", credit)
    return callable(function) and "values" in inspect.signature(function).parameters


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
    return bind("regularizers", options.kl_estimator, {}, given=given, shared={}, context=KL_CONTEXT)


def bound_selections(options: AlgorithmConfig) -> list[Bound]:
    """Each selection with its options: a function of [N] logprobs, advantages and entropies.

    Raises:
        ConfigError: as `vlrl.registry.bound.bind` does.
    """
    given = ("logprobs", "advantages", "entropies")
    return [
        bind("selections", chosen.name, chosen.options, given=given, shared={}, context=SELECTION_CONTEXT)
        for chosen in options.selections
    ]


def _origin(options: AlgorithmConfig) -> str:
    """Where a function that the config does not name may be from."""
    return f" (algorithm.preset={options.preset})" if options.preset else ""


def _default(key: str) -> Any:
    return AlgorithmConfig.model_fields[key].default


def _reads(role: str, name: str) -> frozenset[str]:
    """The shared keys that a function names."""
    names, _ = named(list(inspect.signature(resolve(KINDS[role], name)).parameters.values()))
    return names & frozenset(SHARED[role])
