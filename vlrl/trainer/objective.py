"""What a rank minimises: the loss of each trained token of a micro-batch."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import torch

from vlrl.algorithm.distillation import teacher_advantages
from vlrl.algorithm.loss import kl_k3, negative_log_likelihood
from vlrl.algorithm.off_policy import SumsFn, corrected_surrogate
from vlrl.algorithm.staleness import staleness_sums
from vlrl.config.algorithm import AlgorithmConfig, bound_kl
from vlrl.model.logprobs import DeviceBatch
from vlrl.trainer.result import StepSums

Objective = Literal["grpo", "sft"]


def token_losses(
    batch: DeviceBatch,
    trainer_logprobs: torch.Tensor,
    entropy: torch.Tensor,
    reference_logprobs: torch.Tensor | None,
    teacher_logprobs: torch.Tensor | None,
    objective: Objective,
    algorithm: AlgorithmConfig,
    sequence_sums: SumsFn,
) -> tuple[torch.Tensor, StepSums]:
    """Per-token loss [M] and the sums that describe it.

    Args:
        batch: the micro-batch.
        trainer_logprobs: [M], with gradient.
        entropy: [M], with gradient.
        reference_logprobs: [M] of the starting model; None without a KL term.
        teacher_logprobs: [M] of algorithm.teacher; None without one.
        objective: "grpo" or "sft".
        algorithm: the config's.
        sequence_sums: sums over each sequence's tokens, see `vlrl.algorithm.off_policy`.
    """
    if objective == "sft":
        return negative_log_likelihood(trainer_logprobs), StepSums()
    current = trainer_logprobs.detach()
    if teacher_logprobs is not None and algorithm.teacher is not None:
        told = teacher_advantages(current, teacher_logprobs, algorithm.teacher.coef)
        batch = replace(batch, advantages=batch.advantages + told)
    surrogate = corrected_surrogate(trainer_logprobs, batch, algorithm, sequence_sums)
    per_token = surrogate.loss
    # KL(sampler || trainer), estimated on the sampler's own samples.
    mismatch = kl_k3(batch.sampler_logprobs, current)
    sums = StepSums(mismatch=float(mismatch.sum()), num_clipped=int(surrogate.stopped.sum()))
    sums.by_staleness = staleness_sums(current, batch.sampler_logprobs, batch.token_staleness, surrogate)
    if reference_logprobs is not None:
        kl_reference = bound_kl(algorithm)(trainer_logprobs, reference_logprobs)
        per_token = per_token + algorithm.kl_coef * kl_reference  # GRPO Eq. 3
        sums.kl_reference = float(kl_k3(current, reference_logprobs).sum())
    if teacher_logprobs is not None:
        sums.reverse_kl = float((current - teacher_logprobs).sum())  # k1, whose sum may be negative
    if algorithm.entropy_coef > 0:
        per_token = per_token - algorithm.entropy_coef * entropy
    return per_token, sums
