"""What a trainer rank reports about an optimizer step."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field

import numpy as np
import torch

from vlrl.algorithm import by_policy
from vlrl.algorithm.differences import LogprobDifferences
from vlrl.algorithm.preferences.tokens import GroupSums, no_groups
from vlrl.algorithm.staleness import Sums, no_sums
from vlrl.batch import MicroBatch, TokenValues
from vlrl.types import FloatArray


@dataclass(slots=True)
class StepSums:
    """Sums over trained tokens of one optimizer step; ranks add up, then the driver divides."""

    num_tokens: int = 0
    loss: float = 0.0
    entropy: float = 0.0
    mismatch: float = 0.0
    kl_reference: float = 0.0
    reverse_kl: float = 0.0
    num_clipped: int = 0
    num_selected: int = 0
    num_media: int = 0
    num_media_cached: int = 0
    by_staleness: Sums = field(default_factory=no_sums)
    by_policy: by_policy.Sums = field(default_factory=by_policy.no_sums)
    groups: GroupSums = field(default_factory=no_groups)
    kl_of_others: float = 0.0
    router_aux: float = 0.0

    def __add__(self, other: StepSums) -> StepSums:
        """Field by field."""
        return StepSums(*(a + b for a, b in zip(asdict(self).values(), asdict(other).values(), strict=True)))


@dataclass(frozen=True, slots=True)
class RankStepResult:
    """One rank's account of a step: sums, gradient norm, and the logprob differences of its fresh tokens.

    Fresh tokens are those that were generated under the weights that the step begins with. The metrics are
    the same on all ranks: coefficients that adapt, and what there is of a critic. The values are those
    of tokens whose origins are known.
    """

    sums: StepSums
    grad_norm: float
    differences: LogprobDifferences
    metrics: Mapping[str, float] = field(default_factory=dict)
    values: TokenValues | None = None


@dataclass(slots=True)
class StepAccount:
    """What a rank notes of the micro-batches that it passes through, in their order.

    Attributes:
        sums: over their trained tokens.
        differences: of their fresh tokens' logprobs.
        values: of tokens whose origins are known.
    """

    sums: StepSums = field(default_factory=StepSums)
    differences: LogprobDifferences = field(default_factory=LogprobDifferences)
    values: list[TokenValues] = field(default_factory=list)

    def add(
        self, batch: MicroBatch, sums: StepSums, trainer_logprobs: torch.Tensor, entropy: torch.Tensor
    ) -> None:
        """Note a micro-batch: what the loss counted, and its tokens' logprobs and entropies, [M] each."""
        host_logprobs = trainer_logprobs.detach().float().cpu().numpy()
        sums.num_tokens, sums.entropy = len(batch.target_ids), float(entropy.detach().sum())
        self.sums += sums
        self.differences += fresh_differences(host_logprobs, batch)
        self.values += token_values(batch, host_logprobs, entropy)

    def result(self, grad_norm: float = 0.0, metrics: Mapping[str, float] | None = None) -> RankStepResult:
        """It as the driver is told, with the update's norm and metrics if there was one."""
        values = TokenValues.joined(self.values) if self.values else None
        return RankStepResult(self.sums, grad_norm, self.differences, metrics or {}, values)


def optimizer_metrics(results: Sequence[RankStepResult], lr: float) -> dict[str, float]:
    """Metrics of an optimizer step by what all ranks report; none do where there was no token to train."""
    norm = results[0].grad_norm if results else 0.0
    return {
        "optim/grad_norm": norm,
        "optim/skipped_fraction": float(not math.isfinite(norm)),  # by DeepSpeed, without a message
        "optim/empty_fraction": float(not results),
        "optim/lr": lr,
        **(results[0].metrics if results else {}),
    }


def fresh_differences(trainer_logprobs: FloatArray, batch: MicroBatch) -> LogprobDifferences:
    """The |trainer - sampler| logprobs of a micro-batch's fresh tokens.

    Args:
        trainer_logprobs: [M] float32, of the trained tokens.
        batch: the micro-batch; tokens of older weights were sampled from another policy and do not count.
    """
    fresh = np.flatnonzero(batch.token_staleness == 0)
    return LogprobDifferences.of(
        trainer_logprobs[fresh],
        batch.sampler_logprobs[fresh],
        batch.token_sample_ids,
        batch.sequence_ids[fresh],
    )


def token_values(batch: MicroBatch, trainer_logprobs: FloatArray, entropy: torch.Tensor) -> list[TokenValues]:
    """A micro-batch's values for the rollouts on disk, [M] each; none where nobody asks for them."""
    if batch.origins is None:
        return []
    return [TokenValues(batch.origins, trainer_logprobs, entropy.detach().float().cpu().numpy())]


def mean_of_updates(updates: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Each metric's mean over those of a step's updates that have it; an update without tokens has few."""
    names = dict.fromkeys(name for update in updates for name in update)
    return {name: float(np.mean([u[name] for u in updates if name in u])) for name in names}
