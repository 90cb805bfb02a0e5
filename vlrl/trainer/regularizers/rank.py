"""A rank's coefficients of KL and entropy, and its reference, from one update to the next."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.distributed import ProcessGroup

from vlrl.algorithm.penalties.coefficients import Coefficients
from vlrl.config import Config
from vlrl.model.features import StepFeatures
from vlrl.model.logprobs import DeviceBatch
from vlrl.model.lora import adapters_off
from vlrl.model.sequence_parallel import later_sums
from vlrl.seeds import derive_seed
from vlrl.trainer.critic.rank import RankCritic
from vlrl.trainer.frozen.model import FrozenModel
from vlrl.trainer.objective import Terms, ValueTargets
from vlrl.trainer.regularizers.gather import sums_of_ranks
from vlrl.trainer.regularizers.reference import MovingReference
from vlrl.trainer.regularizers.survey import Passes, survey
from vlrl.trainer.result import StepSums


class RankRegularizers:
    """The reference, the coefficients, and what the loss takes of tokens beside the micro-batches.

    Attributes:
        coefficients: of the next update.
        critic: of this rank; None without one.
    """

    def __init__(
        self,
        config: Config,
        engine: Any,
        reference: FrozenModel | None,
        sharers: ProcessGroup | None,
        critic: RankCritic | None = None,
    ) -> None:
        """Set up.

        Args:
            config: the run's.
            engine: DeepSpeed's, of the policy.
            reference: None without one, and with LoRA, whose model with its adapters off is the reference.
            sharers: ranks that share a sequence with this one.
            critic: if there is one.
        """
        self._algorithm, self._engine, self._reference = config.algorithm, engine, reference
        self._has_reference = config.has_reference
        self.critic = critic
        self._seed, self._num_samples = config.run.seed, config.samples_per_update
        self._moving: MovingReference | None = None
        if config.algorithm.reference.every is not None and reference is not None:
            self._moving = MovingReference(engine, reference.engine, config.algorithm.reference)
        self.coefficients = Coefficients.first(config.algorithm)
        self._surveyed: list[Terms] = []
        self._kept, self._kept_of_survey = StepFeatures(), StepFeatures()
        self._passes = Passes(
            reference=self._reference_logprobs,
            policy=lambda batch: self._engine(batch, self._kept_of_survey),
            later=None if sharers is None else partial(later_sums, sharers),
            values=None if critic is None else critic.values,
        )

    def begin(self, batches: Iterable[DeviceBatch]) -> None:
        """Begin an update; where a term must know all tokens first, look at them. Every rank must call it."""
        self._kept, self._kept_of_survey, self._surveyed = StepFeatures(), StepFeatures(), []
        if self.critic is not None:
            self.critic.begin()
        if self._algorithm.surveys:
            seed = derive_seed(self._seed, "selections", self._engine.global_steps)
            self._surveyed = survey(batches, self._algorithm, self._passes, self.coefficients.kl, seed)

    def terms(self, index: int, batch: DeviceBatch) -> Terms:
        """What the loss takes of the micro-batch with this number; in order, before the policy's own pass."""
        if self._surveyed:
            found = self._surveyed[index]
        else:
            reference_logprobs = self._reference_logprobs(batch)
            found = Terms(advantages=batch.advantages, reference_logprobs=reference_logprobs)
        found.kl_coef, found.entropy_coef = self.coefficients.kl, self.coefficients.bonus
        return found

    @property
    def targets(self) -> list[ValueTargets]:
        """What the critic learns in this update, a micro-batch each; none without one."""
        return [terms.targets for terms in self._surveyed if terms.targets is not None]

    def end(self, sums: StepSums) -> Mapping[str, float]:
        """End an update whose weights are there; every rank must call it.

        Args:
            sums: of this rank.

        Returns:
            The update's coefficients that adapt, by their metric's name.
        """
        used, found = self.coefficients, dict[str, float]()
        if self._algorithm.kl_adaptive is not None:
            found["policy/kl_coef"] = used.kl
        if self._algorithm.entropy_adaptive is not None:
            found["policy/entropy_coef"] = used.bonus
        if found:
            mine = [sums.kl_reference, sums.entropy, float(sums.num_tokens)]
            kl, entropy, num_tokens = sums_of_ranks(mine, self._engine.device)
            self.coefficients = used.after(
                kl / num_tokens, entropy / num_tokens, self._algorithm, self._num_samples
            )
        if self._moving is not None:
            self._moving.follow(self._engine.global_steps)
        return found

    def save_reference(self, folder: Path) -> None:
        """Write this rank's part of a reference that moves."""
        if self._moving is not None:
            self._moving.save(folder, torch.distributed.get_rank())

    def load_reference(self, folder: Path) -> list[str]:
        """Read what `save_reference` of any number of ranks wrote; what is not as it was, in words."""
        if self._moving is None:
            return []
        return self._moving.load(folder, torch.distributed.get_rank())

    def _reference_logprobs(self, batch: DeviceBatch) -> Tensor | None:
        """The reference's logprobs [M], by the same layout; None if the algorithm needs none."""
        if not self._has_reference:
            return None
        if self._reference is not None:
            return self._reference.logprobs(batch, self._kept)
        with torch.no_grad(), adapters_off(self._engine.module):
            chooses_itself = replace(batch, routed_experts=None)  # as a reference of its own does
            return self._engine(chooses_itself, self._kept)[0]  # type: ignore[no-any-return]
