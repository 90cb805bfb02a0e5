"""The DeepSpeed adapter: one ZeRO-3 rank, a Ray actor holding its slice of the model."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator, Sequence
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, Literal

import torch

from vlrl.algorithm.differences import LogprobDifferences
from vlrl.algorithm.loss import kl_k3, negative_log_likelihood, weighted_sum
from vlrl.algorithm.off_policy import SumsFn, corrected_surrogate, sequence_sums
from vlrl.algorithm.ordered import choose_ordered, ordered
from vlrl.algorithm.staleness import staleness_sums
from vlrl.batch import MicroBatch
from vlrl.config import Config
from vlrl.errors import EngineError
from vlrl.model.attention import choose
from vlrl.model.cpu_matmul import choose_products
from vlrl.model.features import StepFeatures
from vlrl.model.hf_names import save_as_published
from vlrl.model.logprobs import DeviceBatch, TreeLogprobs
from vlrl.model.lora import (
    adapter_layout,
    adapter_shards,
    adapter_state,
    adapters_off,
    base_name,
    merged_shards,
    save_adapter,
    sent_alone,
)
from vlrl.model.sequence_parallel import join_group, require_heads, shared_sums
from vlrl.trainer.model import (
    deepspeed_config,
    feature_cache,
    load_model,
    make_leaves,
    make_optimizer,
    set_options,
    with_logprobs,
)
from vlrl.trainer.offload import bring_back, correct_offload, of_reference, split_on_disk, states_in_memory
from vlrl.trainer.profile import StepProfiler
from vlrl.trainer.reslice import count_ranks, load_from_other_ranks
from vlrl.trainer.result import RankStepResult, StepSums, fresh_differences
from vlrl.trainer.shared_folder import REMEDY, SharedFile, WrittenFiles
from vlrl.types import FloatArray
from vlrl.weights.manifest import Checksum, Manifest
from vlrl.weights.sender import WeightSender

Objective = Literal["grpo", "sft"]

ZERO = "zero"
"""The folder of the ranks' files in that of their state."""


class TrainerRank:
    """One ZeRO-3 rank: a slice of the parameters, gradients and optimizer states."""

    def __init__(
        self, config: Config, banned_token_ids: Sequence[int], rank: int, master: tuple[str, int]
    ) -> None:
        self._config, self._rank = config, rank
        self._banned = tuple(banned_token_ids)
        self._world = config.trainer.num_ranks
        self._swaps = config.trainer.offload_optimizer and config.trainer.offload_dir is not None
        # One rank per process and per visible device, so the local rank is always 0.
        os.environ.update(
            MASTER_ADDR=master[0], MASTER_PORT=str(master[1]), RANK=str(rank), LOCAL_RANK="0",
            WORLD_SIZE=str(self._world),
        )  # fmt: skip

    def start(self, shared: SharedFile | None = None) -> float:
        """Join the group, load the model, build the engine; seconds it took.

        Args:
            shared: of the run's folder, if there is one: the driver's must be this host's too.

        Raises:
            ConfigError: if there is no model at model.path, or the run's folder is another one here.
        """
        begin = time.perf_counter()
        if shared is not None:
            shared.require(self._rank)
        import deepspeed

        choose_ordered(self._config.trainer.deterministic)
        on_gpu = torch.cuda.is_available()
        if not on_gpu:
            # Unless told otherwise, DeepSpeed compiles a shared-memory all-reduce for a minute; gloo has one.
            deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False
        self._device = torch.device("cuda", 0) if on_gpu else torch.device("cpu")
        deepspeed.init_distributed(
            dist_backend="nccl" if on_gpu else "gloo",
            timeout=timedelta(seconds=self._config.trainer.timeout_s),
            verbose=False,
        )
        self._attention, attention = choose(self._config.trainer.attention, self._device)
        self._choices = [f"attention: {attention}"]
        if not on_gpu:
            self._choices.append(f"float32 products: {choose_products()}")
        model = load_model(self._config)
        size = self._config.trainer.sequence_parallel
        require_heads(model.get_decoder().config.num_attention_heads, size)
        self._sharers = join_group(size)
        self._sums: SumsFn = sequence_sums if self._sharers is None else partial(shared_sums, self._sharers)
        self._cache = feature_cache(model, self._config, self._device)
        module = self._wrapped(model)
        make_leaves(module)
        optimizer = make_optimizer(module.parameters(), self._config.optim)
        options = deepspeed_config(self._config, module)
        split_on_disk(module, self._config, options)
        self._engine, *_ = deepspeed.initialize(model=module, optimizer=optimizer, config=options)
        correct_offload(self._engine.optimizer, self._config)
        self._profiler = StepProfiler(
            self._config.profile, self._config.run_dir, self._rank, self._engine.module
        )
        needs_copy = self._config.algorithm.kl_coef > 0 and self._config.lora is None
        self._reference = self._build_reference() if needs_copy else None
        self._sender = WeightSender(
            self._rank, self._world, self._device, checksums=self._config.weights.checksums
        )
        return time.perf_counter() - begin

    def choices(self) -> list[str]:
        """What was chosen for this machine and why, in words."""
        return self._choices

    def parameters(self) -> list[tuple[str, str, tuple[int, ...]]]:
        """(name in Hugging Face format, dtype, whole shape) of every parameter; tied ones once."""
        return [
            (name, str(p.dtype).removeprefix("torch."), tuple(p.ds_shape))
            for name, p in ((base_name(n), p) for n, p in self._named_parameters())
            if name is not None
        ]

    def adapters(self) -> list[tuple[str, str, tuple[int, ...]]]:
        """The same of the adapters' weights, which are all that is sent with lora.sync=adapter."""
        return adapter_layout(self._engine.module.model)

    def write_weights(self, manifest: Manifest) -> list[Checksum]:
        """This rank's part in bringing the weights to where the manifest says, see `WeightSender.send`."""
        if sent_alone(self._config) is not None:
            return self._sender.send(adapter_shards(self._engine.module.model), manifest)
        return self._sender.send(self._slices(), manifest)

    def step(self, micro_batches: Sequence[MicroBatch], objective: Objective, lr: float) -> RankStepResult:
        """One optimizer step over this rank's micro-batches."""
        with self._profiler.step(), ordered():
            return self._step(micro_batches, objective, lr)

    def _step(self, micro_batches: Sequence[MicroBatch], objective: Objective, lr: float) -> RankStepResult:
        for group in self._engine.optimizer.param_groups:
            group["lr"] = lr
        sums, differences = StepSums(), LogprobDifferences()
        kept, kept_of_reference = StepFeatures(), StepFeatures()
        for index, micro_batch in enumerate(micro_batches):
            self._engine.set_gradient_accumulation_boundary(index == len(micro_batches) - 1)
            batch = DeviceBatch.of(micro_batch, self._device)
            # Before the policy's own pass: ZeRO-3 follows an engine's calls, and LoRA has one for both.
            wanted = objective == "grpo"
            reference_logprobs = self._reference_logprobs(batch, kept_of_reference) if wanted else None
            trainer_logprobs, entropy = self._engine(batch, kept)
            computed = trainer_logprobs, entropy, reference_logprobs
            per_token, micro_sums = self._objective(batch, *computed, objective)
            loss = weighted_sum(per_token, batch.weights)
            # ZeRO averages gradients over ranks; the weights already average over the whole batch.
            self._engine.backward(loss * self._world)
            micro_sums.num_tokens = len(micro_batch.target_ids)
            micro_sums.loss = float(loss.detach())
            micro_sums.entropy = float(entropy.detach().sum())
            sums += micro_sums
            host_logprobs = trainer_logprobs.detach().float().cpu().numpy()
            differences += fresh_differences(host_logprobs, micro_batch)
        self._profiler.mark("optimizer")
        self._engine.step()
        self._profiler.mark("rest")
        if self._cache is not None:
            sums.num_media, sums.num_media_cached = self._cache.take_counts()
        return RankStepResult(sums, float(self._engine.get_global_grad_norm() or 0.0), differences)

    def logprobs(self, micro_batches: Sequence[MicroBatch]) -> list[FloatArray]:
        """Trainer logprobs of each micro-batch's trained tokens, without gradient: [M] float32 each."""
        kept = StepFeatures()
        with torch.no_grad(), ordered():
            return [
                self._engine(DeviceBatch.of(m, self._device), kept)[0].float().cpu().numpy()
                for m in micro_batches
            ]

    def save_model(self, path: str, manifest: Manifest) -> WrittenFiles:
        """Write the model on rank 0, in Hugging Face format, adapters merged and beside it.

        The manifest is of the whole model; the weights may lie in its shared memory.
        """
        state = self._sender.whole(self._slices(), manifest)
        if self._rank:
            return WrittenFiles(socket.gethostname(), {})
        model = self._engine.module.model
        save_as_published(model)
        model.save_pretrained(path, state_dict=state)
        if self._adapters:
            save_adapter(model, self._adapters, Path(path) / "adapter")
        return WrittenFiles.under(path)

    def save_state(self, path: str) -> WrittenFiles:
        """Write this rank's slice of the optimizer states, and its random states."""
        state: dict[str, Any] = {"rng": torch.get_rng_state()}
        if self._swaps:
            state["in_memory"] = states_in_memory(self._engine.optimizer)
        self._engine.save_checkpoint(path, tag=ZERO, client_state=state)
        return WrittenFiles.under(path)

    def load_state(self, path: str) -> list[str]:
        """Read what save_state wrote; what the config has changed of the optimizer since then, in words."""
        folder = Path(path) / ZERO
        num_saved = count_ranks(folder)
        if num_saved == 0:
            raise EngineError(f"host {socket.gethostname()} sees no trainer state under {path}: {REMEDY}")
        if num_saved == self._world:
            _, client_state = self._engine.load_checkpoint(path, tag=ZERO)
        else:
            client_state = load_from_other_ranks(self._engine, folder, self._rank, self._world)
        torch.set_rng_state(client_state["rng"])
        if self._swaps:
            bring_back(self._engine.optimizer, client_state["in_memory"])
        return set_options(self._engine.optimizer.param_groups, self._config.optim)

    def _reference_logprobs(self, batch: DeviceBatch, kept: StepFeatures) -> torch.Tensor | None:
        """The starting model's logprobs [M], by the same layout; None if the algorithm needs none."""
        if self._config.algorithm.kl_coef == 0:
            return None
        with torch.no_grad():
            if self._reference is None:
                with adapters_off(self._engine.module):
                    return self._engine(batch, kept)[0]  # type: ignore[no-any-return]
            return self._reference(batch, kept)[0]  # type: ignore[no-any-return]

    def _objective(
        self,
        batch: DeviceBatch,
        trainer_logprobs: torch.Tensor,
        entropy: torch.Tensor,
        reference_logprobs: torch.Tensor | None,
        objective: Objective,
    ) -> tuple[torch.Tensor, StepSums]:
        """Per-token loss [M] and the sums that describe it."""
        if objective == "sft":
            return negative_log_likelihood(trainer_logprobs), StepSums()
        algorithm = self._config.algorithm
        surrogate = corrected_surrogate(trainer_logprobs, batch, algorithm, self._sums)
        per_token, current = surrogate.loss, trainer_logprobs.detach()
        # KL(sampler || trainer), estimated on the sampler's own samples.
        mismatch = kl_k3(batch.sampler_logprobs, current)
        sums = StepSums(mismatch=float(mismatch.sum()), num_clipped=int(surrogate.stopped.sum()))
        sums.by_staleness = staleness_sums(current, batch.sampler_logprobs, batch.token_staleness, surrogate)
        if reference_logprobs is not None:
            kl_reference = kl_k3(trainer_logprobs, reference_logprobs)
            per_token = per_token + algorithm.kl_coef * kl_reference  # GRPO Eq. 3
            sums.kl_reference = float(kl_reference.detach().sum())
        if algorithm.entropy_coef > 0:
            per_token = per_token - algorithm.entropy_coef * entropy
        return per_token, sums

    def _build_reference(self) -> Any:
        """The starting model, frozen, its parameters split over the ranks too."""
        import deepspeed

        # The features of a frozen tower are the policy's own: one cache serves both.
        module = self._wrapped(load_model(self._config))
        module.requires_grad_(False)
        config = of_reference(self._config)
        options = deepspeed_config(config, module)
        split_on_disk(module, config, options)
        engine, *_ = deepspeed.initialize(model=module, config=options)
        engine.eval()  # DeepSpeed's returns nothing
        return engine

    def _wrapped(self, model: Any) -> TreeLogprobs:
        return with_logprobs(model, self._config, self._banned, self._attention, self._cache, self._sharers)

    def _slices(self) -> Iterator[tuple[str, torch.Tensor]]:
        """This rank's flat slice of every parameter, adapters merged; every rank must call it."""
        model = self._engine.module.model
        self._adapters = adapter_state(model)
        return merged_shards(model, self._adapters, self._rank)

    def _named_parameters(self) -> list[tuple[str, Any]]:
        return list(self._engine.module.model.named_parameters())
