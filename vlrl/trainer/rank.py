"""The DeepSpeed adapter: one ZeRO-3 rank, a Ray actor holding its slice of the model."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import torch

from vlrl.algorithm.off_policy import SumsFn, sequence_sums
from vlrl.algorithm.ordered import choose_ordered, ordered
from vlrl.batch import Frames, MicroBatch
from vlrl.choices import MachineChoice
from vlrl.config import Config
from vlrl.model.adapters.merge import merged_shards
from vlrl.model.attention import require_device
from vlrl.model.logprobs import TreeLogprobs
from vlrl.model.lora import adapter_shards, adapter_state, layout_of, sent_alone
from vlrl.model.sequence_parallel import join_group, require_heads, shared_sums
from vlrl.storage.shared_folder import SharedFile, WrittenFiles
from vlrl.trainer.choices import choose_for
from vlrl.trainer.critic.rank import RankCritic
from vlrl.trainer.device_memory import DeviceMemory
from vlrl.trainer.frozen.model import open_teacher
from vlrl.trainer.group import join_ranks
from vlrl.trainer.loading import load_split
from vlrl.trainer.model import deepspeed_config, feature_cache, with_logprobs
from vlrl.trainer.objective import Objective
from vlrl.trainer.offload import require_disk_access
from vlrl.trainer.optimizers.make import make_engine
from vlrl.trainer.passes import RankPasses
from vlrl.trainer.profile import StepProfiler
from vlrl.trainer.regularizers.copies import AdapterCopies
from vlrl.trainer.regularizers.rank import RankRegularizers
from vlrl.trainer.regularizers.reference import build_reference
from vlrl.trainer.result import RankStepResult, StepAccount, StepSums
from vlrl.trainer.state.rank_state import load_state, save_model, save_state
from vlrl.types import FloatArray
from vlrl.weights.manifest import Checksum, Manifest
from vlrl.weights.sender import WeightSender


class TrainerRank:
    """One ZeRO-3 rank: a slice of the parameters, gradients and optimizer states."""

    def __init__(
        self,
        config: Config,
        banned_token_ids: Sequence[int],
        rank: int,
        master: tuple[str, int],
        nodes: Sequence[int] = (),
    ) -> None:
        """Set up.

        Args:
            config: the whole config.
            banned_token_ids: tokens that are never generated (law 3).
            rank: this one.
            master: address and port at which all ranks meet.
            nodes: number of each rank's node; empty for one node.
        """
        self._config, self._rank = config, rank
        self._nodes, self._banned = tuple(nodes), tuple(banned_token_ids)
        self._world = config.trainer.world_size
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
            ConfigError: see `load_split`; or if the run's folder is another one on this host, or no access to
                disks can be compiled.
        """
        begin = time.perf_counter()
        if shared is not None:
            shared.require(self._rank)
        if self._config.trainer.offload_dir is not None:
            require_disk_access(torch.cuda.is_available())
        self._device = join_ranks(self._config.trainer.timeout_s)
        choose_ordered(self._config.trainer.deterministic)
        require_device(self._config.trainer.attention, self._device)
        options = deepspeed_config(self._config, self._device.type)
        model = load_split(self._config, options)
        size = self._config.trainer.sequence_parallel
        require_heads(model.get_decoder().config, size)
        self._chosen = choose_for(model, self._config, self._device)
        self._sharers = join_group(size)
        self._cache = feature_cache(model, self._config, self._device)
        module = self._wrapped(model, is_policy=True)
        self._engine = make_engine(module, self._config, options, self._device)
        self._profiler = StepProfiler(
            self._config.profile, self._config.run_dir, self._rank, self._engine.module
        )
        config = self._config
        self._reference = self._teacher = critic = None
        if config.has_reference and config.lora is None:
            self._reference = build_reference(config, self._device.type, self._wrapped)
        if config.algorithm.teacher is not None:
            self._teacher = open_teacher(config, self._banned, self._device, self._sharers, self._chosen.all)
        if config.algorithm.critic is not None:
            critic = RankCritic(config, self._device, self._sharers, self._chosen.all, self._cache)
        others = (self._reference, self._teacher, critic)
        self._regularizers = RankRegularizers(config, self._engine, self._reference, self._sharers, critic)
        sums: SumsFn = sequence_sums if self._sharers is None else partial(shared_sums, self._sharers)
        self._passes = RankPasses(self._engine, config, self._device, self._regularizers, self._teacher, sums)
        self._copies = AdapterCopies(self._engine, config.policies)
        self._sender = WeightSender(self._rank, self._world, self._device, self._nodes)
        self._memory = DeviceMemory(
            [self._engine, *(m.engine for m in others if m is not None)], self._device
        )
        return time.perf_counter() - begin

    def sleep(self) -> int:
        """Give the device's memory up for an engine; bytes freed."""
        return self._memory.give_up(keep_gradients=self._passes.has_gradients)

    def wake(self) -> None:
        """Take the device's memory back; until then nothing else may be asked of this rank."""
        self._memory.take_back()

    def choices(self) -> tuple[MachineChoice, ...]:
        """What was chosen for this machine, and why."""
        others = [model.choices for model in (self._teacher, self._regularizers.critic) if model is not None]
        return sum(others, self._chosen.all)

    def parameters(self) -> list[tuple[str, str, tuple[int, ...]]]:
        """(name in Hugging Face format, dtype, whole shape) of each parameter, tied ones once, and buffer."""
        return layout_of(self._engine.module.model, of_adapters=False)

    def adapters(self) -> list[tuple[str, str, tuple[int, ...]]]:
        """The same of the adapters' weights, which are all that is sent with lora.sync=adapter."""
        return layout_of(self._engine.module.model, of_adapters=True)

    def write_weights(self, manifest: Manifest) -> list[Checksum]:
        """This rank's part in bringing the weights to where the manifest says, see `WeightSender.send`."""
        if sent_alone(self._config) is not None:
            return self._sender.send(adapter_shards(self._engine.module.model), manifest)
        return self._sender.send(self._slices(), manifest)

    def step(
        self, micro_batches: Sequence[MicroBatch], objective: Objective, lr: float, *frames: Frames
    ) -> RankStepResult:
        """One optimizer step over this rank's micro-batches.

        Args:
            micro_batches: whose media may be without frames.
            objective: what is minimised.
            lr: learning rate.
            frames: of these media.
        """
        with self._profiler.step(), ordered():
            return self._step(micro_batches, objective, lr, frames)

    def _step(
        self, micro_batches: Sequence[MicroBatch], objective: Objective, lr: float, frames: Sequence[Frames]
    ) -> RankStepResult:
        critic = self._regularizers.critic if objective == "grpo" else None
        learns = critic is None or not critic.learns_alone
        account = self._passes.over(micro_batches, objective, frames, train=learns)
        self._profiler.mark("optimizer")
        norm, metrics = self._update(lr) if learns else (0.0, dict[str, float]())
        self._profiler.mark("rest")
        if critic is not None:
            batches = partial(map, partial(self._passes.on_device, frames=frames), micro_batches)
            metrics |= critic.update(batches, self._regularizers.targets)
        if self._cache is not None:
            account.sums.num_media, account.sums.num_media_cached = self._cache.take_counts()
        return account.result(norm, metrics)

    def accumulate(
        self, micro_batches: Sequence[MicroBatch], objective: Objective, *frames: Frames
    ) -> RankStepResult:
        """Add gradients to those that there are since the last update; `update` follows them."""
        with ordered():
            return self._passes.over(micro_batches, objective, frames, train=True).result()

    def update(self, lr: float) -> RankStepResult:
        """The optimizer's step along the gradients that `accumulate` has added up."""
        with ordered():
            return StepAccount().result(*self._update(lr))

    def _update(self, lr: float) -> tuple[float, dict[str, float]]:
        """(norm of the gradient before it is clipped, coefficients that adapt)."""
        for group in self._engine.optimizer.param_groups:
            group["lr"] = lr
        self._engine.step()
        regularized = self._passes.take_regularized()
        metrics = {} if regularized is None else self._regularizers.end(regularized)
        return float(self._engine.get_global_grad_norm() or 0.0), dict(metrics)

    def measure(self, micro_batches: Sequence[MicroBatch], objective: Objective, *frames: Frames) -> StepSums:
        """The sums of a step that is not taken, without gradient."""
        with torch.no_grad(), ordered():
            return self._passes.over(micro_batches, objective, frames, train=False).sums

    def with_proximal(self, micro_batches: Sequence[MicroBatch], *frames: Frames) -> Sequence[MicroBatch]:
        """The micro-batches with the present weights' logprobs noted, to be given back to `step`."""
        of_batches = self.logprobs(micro_batches, *frames)
        for micro_batch, of_tokens in zip(micro_batches, of_batches, strict=True):
            micro_batch.proximal_logprobs = of_tokens
        return micro_batches

    def logprobs(self, micro_batches: Sequence[MicroBatch], *frames: Frames) -> list[FloatArray]:
        """Trainer logprobs of each micro-batch's trained tokens, without gradient: [M] float32 each."""
        with torch.no_grad(), ordered():
            return self._passes.logprobs(micro_batches, frames)

    def save_model(self, path: str, manifest: Manifest) -> WrittenFiles:
        """Write the model on rank 0, in Hugging Face format, adapters merged and beside it.

        The manifest is of the whole model; the weights may lie in its shared memory.
        """
        state = self._sender.whole(self._slices(), manifest)
        if self._rank:
            return WrittenFiles(socket.gethostname(), {})
        save_model(self._engine.module.model, path, state, self._adapters)
        return WrittenFiles.under(path)

    def save_state(self, path: str) -> WrittenFiles:
        """Write this rank's slice of the optimizer states, and its random states."""
        save_state(self._engine, path, self._config, self._device.type, self._regularizers)
        self._copies.save(path, self._rank)
        return WrittenFiles.under(path)

    def load_state(self, path: str) -> list[str]:
        """Read what save_state wrote; what the config has changed of the optimizer since then, in words."""
        self._copies.load(path, self._rank)
        return load_state(self._engine, path, self._config, self._device.type, self._regularizers)

    def refresh_copies(self, step: int) -> None:
        """Take the copies of policies that are due before a step, see `AdapterCopies.follow`."""
        self._copies.follow(step)

    def _wrapped(self, model: Any, is_policy: bool = False) -> TreeLogprobs:
        chosen, cache = self._chosen, self._cache
        return with_logprobs(model, self._config, self._banned, chosen, cache, self._sharers, is_policy)

    def _slices(self) -> Iterator[tuple[str, torch.Tensor]]:
        """This rank's flat slices of what is published, a lone adapter merged; every rank must call it."""
        model = self._engine.module.model
        self._adapters = adapter_state(model)
        return merged_shards(model, {} if self._config.policies else self._adapters, self._rank, self._device)
