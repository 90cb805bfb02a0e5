"""The passes of a rank over its micro-batches: forward, and to train backward."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import torch

from vlrl.algorithm.loss import weighted_sum
from vlrl.algorithm.off_policy import SumsFn
from vlrl.batch import Frames, MicroBatch, with_frames
from vlrl.config import Config
from vlrl.model.features import StepFeatures
from vlrl.model.logprobs import DeviceBatch
from vlrl.model.structured.allowed import AllowedTokens
from vlrl.processors.auto import open_processor
from vlrl.protocols import Processor
from vlrl.trainer.frozen.model import FrozenModel
from vlrl.trainer.model import begin_gradients
from vlrl.trainer.objective import Objective, Terms, sums_by_policy, token_losses
from vlrl.trainer.regularizers.rank import RankRegularizers
from vlrl.trainer.result import StepAccount, StepSums
from vlrl.types import FloatArray


class RankPasses:
    """Takes micro-batches through the policy; gradients add up until the optimizer takes its step.

    Attributes:
        has_gradients: there are some that wait for that step.
    """

    def __init__(
        self,
        engine: Any,
        config: Config,
        device: torch.device,
        regularizers: RankRegularizers,
        teacher: FrozenModel | None,
        sums: SumsFn,
    ) -> None:
        """Set up.

        Args:
            engine: DeepSpeed's, of the policy.
            config: the run's.
            device: that computes.
            regularizers: what the loss takes beside the micro-batches.
            teacher: of algorithm.teacher; None without one.
            sums: over the tokens of a sequence, which ranks may share.
        """
        self._engine, self._config, self._device = engine, config, device
        self._regularizers, self._teacher, self._sums = regularizers, teacher, sums
        self.has_gradients = False
        self._regularized: StepSums | None = None

    def over(
        self, micro_batches: Sequence[MicroBatch], objective: Objective, frames: Sequence[Frames], train: bool
    ) -> StepAccount:
        """Forward, and to train backward, over each micro-batch; every rank must call it.

        Args:
            micro_batches: whose media may be without frames.
            objective: what is minimised.
            frames: of these media.
            train: gradients are added to those that there are; without it the caller switches them off.
        """
        account, kept, kept_of_teacher = StepAccount(), StepFeatures(), StepFeatures()
        held = self._regularizers if objective != "sft" else None
        if held:
            held.begin(self.on_device(micro_batch, frames) for micro_batch in micro_batches)
        if train and not self.has_gradients:
            begin_gradients(self._engine, micro_batches[0].media_inputs is not None)
        for index, micro_batch in enumerate(micro_batches):
            self._engine.set_gradient_accumulation_boundary(index == len(micro_batches) - 1)
            batch = self.on_device(micro_batch, frames)
            # Before the policy's own pass: ZeRO-3 follows an engine's calls, and LoRA has one for both.
            terms = held.terms(index, batch) if held else Terms(advantages=batch.advantages)
            if self._teacher is not None and objective == "grpo":
                terms.teacher_logprobs = self._teacher.logprobs(batch, kept_of_teacher)
            with torch.set_grad_enabled(train):
                trainer_logprobs, entropy = self._engine(batch, kept)
            per_token, sums = token_losses(
                batch, trainer_logprobs, entropy, terms, objective, self._config.algorithm, self._sums
            )
            loss = weighted_sum(per_token, batch.weights)
            if train:  # ZeRO averages gradients over ranks; the weights already average over the whole batch
                self._engine.backward(loss * self._config.trainer.world_size)
            sums.by_policy = sums_by_policy(batch, trainer_logprobs, entropy, terms, self._config)
            sums.loss = float(loss.detach())
            if (balance := self._engine.module.balance) is not None:
                sums.router_aux = balance.loss
            account.add(micro_batch, sums, trainer_logprobs, entropy)
        if train:
            self.has_gradients = True
            if objective == "grpo":
                self._regularized = account.sums + (self._regularized or StepSums())
        return account

    def take_regularized(self) -> StepSums | None:
        """The optimizer has taken its step; the sums behind its gradients, if regularizers had a part."""
        regularized, self._regularized, self.has_gradients = self._regularized, None, False
        return regularized

    def logprobs(self, micro_batches: Sequence[MicroBatch], frames: Sequence[Frames]) -> list[FloatArray]:
        """Trainer logprobs of each micro-batch's trained tokens: [M] float32 each."""
        kept = StepFeatures()
        batches = (self.on_device(micro_batch, frames) for micro_batch in micro_batches)
        return [self._engine(batch, kept)[0].float().cpu().numpy() for batch in batches]

    def on_device(self, micro_batch: MicroBatch, frames: Sequence[Frames]) -> DeviceBatch:
        """A micro-batch where the rank computes, its media with their pixels; text needs no processor."""
        return DeviceBatch.of(
            micro_batch,
            self._device,
            lambda media: self._processor.pixels(with_frames(media, frames)),
            lambda *actions: self._allowed(*actions),
        )

    @cached_property
    def _processor(self) -> Processor:
        return open_processor(self._config)

    @cached_property
    def _allowed(self) -> AllowedTokens:
        return AllowedTokens(self._config, self._processor.stop_token_ids)
