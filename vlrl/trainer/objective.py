"""What a rank minimises: the loss of each trained token of a micro-batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import torch

from vlrl.algorithm.by_policy import Sums, no_sums, policy_metrics, policy_sums
from vlrl.algorithm.differences import LogprobDifferences
from vlrl.algorithm.distillation import teacher_advantages
from vlrl.algorithm.loss import MAX_LOG_RATIO, kl_k3, negative_log_likelihood
from vlrl.algorithm.off_policy import SumsFn, corrected_surrogate
from vlrl.algorithm.preferences.tokens import PreferenceObjective, preference_losses, preference_metrics
from vlrl.algorithm.staleness import staleness_metrics, staleness_sums
from vlrl.config import Config
from vlrl.config.algorithm import AlgorithmConfig, bound_kl
from vlrl.errors import ConfigError
from vlrl.model.logprobs import DeviceBatch
from vlrl.trainer.result import RankStepResult, StepSums

Objective: TypeAlias = Literal["grpo", "sft"] | PreferenceObjective


@dataclass(frozen=True, slots=True)
class ValueTargets:
    """What a critic learns of a micro-batch's tokens.

    Attributes:
        old_values: [M] float32, before the step's first update.
        returns: [M] float32, which values should be.
        weights: [M] float32, share of each token in the critic's loss; 0 where no step begins. They sum to 1
            over all ranks' micro-batches.
    """

    old_values: torch.Tensor
    returns: torch.Tensor
    weights: torch.Tensor


@dataclass(slots=True, kw_only=True)
class Terms:
    """What the loss takes of a micro-batch's tokens beside the micro-batch itself.

    Attributes:
        advantages: [M], in place of the micro-batch's.
        reference_logprobs: [M] nats; None without a KL term.
        teacher_logprobs: [M] nats of algorithm.teacher; None without one.
        factors: [M], of the policy's loss; None is 1, see `vlrl.algorithm.selections`.
        penalties: [M], coefficients of KL(sampler || trainer); None is 0.
        kl_coef: β of this update.
        entropy_coef: of the entropy's bonus in this update.
        targets: of the critic; None without one.
    """

    advantages: torch.Tensor
    kl_coef: float = 0.0
    entropy_coef: float = 0.0
    reference_logprobs: torch.Tensor | None = None
    teacher_logprobs: torch.Tensor | None = None
    factors: torch.Tensor | None = None
    penalties: torch.Tensor | None = None
    targets: ValueTargets | None = None


def token_losses(
    batch: DeviceBatch,
    trainer_logprobs: torch.Tensor,
    entropy: torch.Tensor,
    terms: Terms,
    objective: Objective,
    algorithm: AlgorithmConfig,
    sequence_sums: SumsFn,
) -> tuple[torch.Tensor, StepSums]:
    """Per-token loss [M] and the sums that describe it.

    Args:
        batch: the micro-batch.
        trainer_logprobs: [M], with gradient.
        entropy: [M], with gradient.
        terms: what else is known of its tokens.
        objective: "grpo", "sft", or a loss of pairs.
        algorithm: the config's.
        sequence_sums: sums over each sequence's tokens, see `vlrl.algorithm.off_policy`.
    """
    if objective == "sft":
        return negative_log_likelihood(trainer_logprobs), StepSums()
    if isinstance(objective, PreferenceObjective):
        found = preference_losses(trainer_logprobs, terms.reference_logprobs, batch, objective, sequence_sums)
        return found.loss, StepSums(groups=found.sums, kl_of_others=found.kl)
    current, teacher_logprobs = trainer_logprobs.detach(), terms.teacher_logprobs
    advantages = terms.advantages
    if teacher_logprobs is not None and algorithm.teacher is not None:
        advantages = advantages + teacher_advantages(current, teacher_logprobs, algorithm.teacher.coef)
    batch = replace(batch, advantages=advantages)
    surrogate = corrected_surrogate(trainer_logprobs, batch, algorithm, sequence_sums)
    per_token = surrogate.loss
    # KL(sampler || trainer), estimated on the sampler's own samples.
    mismatch = kl_k3(batch.sampler_logprobs, current)
    sums = StepSums(mismatch=float(mismatch.sum()), num_clipped=int(surrogate.stopped.sum()))
    sums.by_staleness = staleness_sums(current, batch.sampler_logprobs, batch.token_staleness, surrogate)
    if terms.factors is not None and terms.penalties is not None:
        # k3 of KL(sampler || trainer) over the sampler's tokens, finite also where its coefficient is 0
        away = (trainer_logprobs - batch.sampler_logprobs).clamp(max=MAX_LOG_RATIO)
        kl_sampler = torch.expm1(away) - away
        per_token = terms.factors * per_token + terms.penalties * kl_sampler
        sums.num_selected = int(((terms.factors > 0) & (terms.penalties == 0)).sum())
    reference_logprobs = terms.reference_logprobs
    if reference_logprobs is not None:
        if algorithm.kl_in == "loss":
            kl_reference = bound_kl(algorithm)(
                trainer_logprobs, reference_logprobs, sampler_logprobs=batch.sampler_logprobs
            )
            per_token = per_token + terms.kl_coef * kl_reference  # GRPO Eq. 3
        sums.kl_reference = float(kl_k3(current, reference_logprobs).sum())
    if teacher_logprobs is not None:
        sums.reverse_kl = float((current - teacher_logprobs).sum())  # k1, whose sum may be negative
    if terms.entropy_coef > 0:
        per_token = per_token - terms.entropy_coef * entropy
    return per_token, sums


def sums_by_policy(
    batch: DeviceBatch, trainer_logprobs: torch.Tensor, entropy: torch.Tensor, terms: Terms, config: Config
) -> Sums:
    """What `StepSums` has of the tokens of each policy; arguments as `token_losses` has them."""
    if batch.policy_ids is None:
        return no_sums()
    policies, current = batch.policy_ids[batch.source_index], trainer_logprobs.detach()
    return policy_sums(
        policies,
        len(config.policies),
        entropy.detach(),
        current,
        batch.sampler_logprobs,
        terms.reference_logprobs,
    )


def rl_objective(config: Config) -> Objective:
    """What `vlrl train` minimises: the loss of pairs that each group gives, or that of its advantages.

    Raises:
        ConfigError: for a loss of completions with labels, which groups do not have, or of a reward model.
    """
    if config.preferences is None:
        return "grpo"
    if config.preferences.is_scored:
        raise ConfigError(
            f"preferences.loss={config.preferences.loss.name} trains a reward model, and `vlrl train` a "
            "policy; set preferences.loss=dpo, or train with `vlrl reward-model`"
        )
    if config.preferences.is_unpaired:
        raise ConfigError(
            f"preferences.loss={config.preferences.loss.name} is one of completions with labels, and `vlrl "
            "train` makes pairs of its groups; set preferences.loss=dpo, or train on rows with `vlrl dpo`"
        )
    return PreferenceObjective(config.preferences)


def objective_metrics(sums: StepSums, objective: Objective, config: Config) -> dict[str, float]:
    """What an objective's sums say, by the names of `vlrl.tracking.metrics`; none without tokens."""
    if not sums.num_tokens or objective == "sft":
        return {}
    if isinstance(objective, PreferenceObjective):
        return preference_metrics(sums.groups, objective.options)
    found = {
        "policy/entropy": sums.entropy / sums.num_tokens,
        "policy/sampler_mismatch": sums.mismatch / sums.num_tokens,
        "policy/clip_fraction": sums.num_clipped / sums.num_tokens,
    }
    if config.algorithm.selections:
        found["policy/unselected_fraction"] = 1.0 - sums.num_selected / sums.num_tokens
    if config.algorithm.kl_coef > 0:
        found["policy/kl_reference"] = sums.kl_reference / sums.num_tokens
    if config.algorithm.teacher is not None:
        found["distillation/reverse_kl"] = sums.reverse_kl / sums.num_tokens
    names, has_reference = tuple(config.policies), config.has_reference
    found |= policy_metrics(sums.by_policy, names, has_reference=has_reference)
    return found | staleness_metrics(sums.by_staleness)


def accounted(
    results: Sequence[RankStepResult], objective: Objective, config: Config
) -> tuple[dict[str, float], LogprobDifferences]:
    """What ranks have noted of their micro-batches, as one: metrics, and differences of fresh tokens."""
    sums = sum((result.sums for result in results), StepSums())
    metrics = {"policy/loss": sums.loss} | objective_metrics(sums, objective, config)
    if config.trainer.router_aux_coef > 0:
        metrics["policy/router_aux_loss"] = sums.router_aux
    if sums.num_media:
        metrics["vision/cached_share"] = sums.num_media_cached / sums.num_media
    return metrics, sum((result.differences for result in results), LogprobDifferences())
