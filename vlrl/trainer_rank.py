"""The DeepSpeed adapter: one ZeRO-3 rank, a Ray actor holding its slice of the model."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import Any, Literal

import numpy as np
import torch

from vlrl.batch import MicroBatch
from vlrl.config import Config
from vlrl.errors import ConfigError, EngineError
from vlrl.logprobs import DeviceBatch, TreeLogprobs
from vlrl.loss import clipped_surrogate, kl_k3, negative_log_likelihood, weighted_sum
from vlrl.published import save_as_published
from vlrl.types import FloatArray
from vlrl.weights import Manifest, Segment

Objective = Literal["grpo", "sft"]


@dataclass(slots=True)
class StepSums:
    """Sums over trained tokens of one optimizer step; ranks add up, then the driver divides."""

    num_tokens: int = 0
    loss: float = 0.0
    entropy: float = 0.0
    kl: float = 0.0
    kl_reference: float = 0.0
    num_clipped: int = 0

    def __add__(self, other: StepSums) -> StepSums:
        """Field by field."""
        return StepSums(*(a + b for a, b in zip(asdict(self).values(), asdict(other).values(), strict=True)))


@dataclass(frozen=True, slots=True)
class StepResult:
    """One rank's account of a step: sums, gradient norm, and the worst logprob difference with its sample."""

    sums: StepSums
    grad_norm: float
    max_logprob_diff: float
    worst_sample_id: str


class TrainerRank:
    """One ZeRO-3 rank: a slice of the parameters, gradients and optimizer states."""

    def __init__(
        self, config: Config, banned_token_ids: Sequence[int], rank: int, master: tuple[str, int]
    ) -> None:
        self._config, self._rank = config, rank
        self._banned = tuple(banned_token_ids)
        self._world = config.trainer.num_ranks
        # One rank per process and per visible device, so the local rank is always 0.
        os.environ.update(
            MASTER_ADDR=master[0], MASTER_PORT=str(master[1]), RANK=str(rank), LOCAL_RANK="0",
            WORLD_SIZE=str(self._world),
        )  # fmt: skip

    def start(self) -> float:
        """Join the group, load the model, build the engine; seconds it took.

        Raises:
            ConfigError: if there is no model at model.path.
        """
        begin = time.perf_counter()
        import deepspeed

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
        module = self._build_module()
        _make_leaves(module)
        optim = self._config.optim
        optimizer = torch.optim.AdamW(
            module.parameters(),
            lr=optim.lr,
            betas=optim.betas,
            eps=optim.eps,
            weight_decay=optim.weight_decay,
        )
        self._engine, *_ = deepspeed.initialize(
            model=module, optimizer=optimizer, config=_deepspeed_config(self._config)
        )
        self._reference = self._build_reference() if self._config.algorithm.kl_coef > 0 else None
        return time.perf_counter() - begin

    def parameters(self) -> list[tuple[str, str, tuple[int, ...]]]:
        """(name in Hugging Face format, dtype, whole shape) of every parameter; tied ones once."""
        return [
            (name, str(p.dtype).removeprefix("torch."), tuple(p.ds_shape))
            for name, p in self._named_parameters()
        ]

    def attach(self, manifest: Manifest) -> None:
        """Map the weight segment."""
        self._segment = Segment(manifest)

    def write_weights(self) -> None:
        """Copy this rank's slice of every parameter into the segment."""
        for name, parameter in self._named_parameters():
            shard = parameter.ds_tensor
            self._segment.write_shard(name, shard.detach(), self._rank * shard.numel())

    def step(self, micro_batches: Sequence[MicroBatch], objective: Objective, lr: float) -> StepResult:
        """One optimizer step over this rank's micro-batches."""
        for group in self._engine.optimizer.param_groups:
            group["lr"] = lr
        sums, worst = StepSums(), (0.0, "")
        for index, micro_batch in enumerate(micro_batches):
            self._engine.set_gradient_accumulation_boundary(index == len(micro_batches) - 1)
            batch = DeviceBatch.of(micro_batch, self._device)
            trainer_logprobs, entropy = self._engine(batch)
            per_token, micro_sums = self._objective(batch, trainer_logprobs, objective)
            loss = weighted_sum(per_token, batch.weights)
            # ZeRO averages gradients over ranks; the weights already average over the whole batch.
            self._engine.backward(loss * self._world)
            micro_sums.num_tokens = len(micro_batch.target_ids)
            micro_sums.loss = float(loss.detach())
            micro_sums.entropy = float(entropy.sum())
            sums += micro_sums
            worst = max(worst, _worst_difference(trainer_logprobs.detach(), micro_batch))
        self._engine.step()
        return StepResult(sums, float(self._engine.get_global_grad_norm() or 0.0), *worst)

    def logprobs(self, micro_batches: Sequence[MicroBatch]) -> list[FloatArray]:
        """Trainer logprobs of each micro-batch's trained tokens, without gradient: [M] float32 each."""
        with torch.no_grad():
            return [
                self._engine(DeviceBatch.of(m, self._device))[0].float().cpu().numpy() for m in micro_batches
            ]

    def save_model(self, path: str) -> None:
        """Write the segment's weights in Hugging Face format; rank 0 alone is asked."""
        state = {name: tensor.clone() for name, tensor in self._segment}
        model = self._engine.module.model
        save_as_published(model)
        model.save_pretrained(path, state_dict=state)

    def save_state(self, path: str) -> None:
        """Write this rank's slice of the optimizer states, and its random states."""
        self._engine.save_checkpoint(path, tag="zero", client_state={"rng": torch.get_rng_state()})

    def load_state(self, path: str) -> None:
        """Read what save_state wrote."""
        loaded, client_state = self._engine.load_checkpoint(path, tag="zero")
        if loaded is None:
            raise EngineError(
                f"no trainer state under {path}; was it written with trainer.num_ranks={self._world}?"
            )
        torch.set_rng_state(client_state["rng"])

    def _objective(
        self, batch: DeviceBatch, trainer_logprobs: torch.Tensor, objective: Objective
    ) -> tuple[torch.Tensor, StepSums]:
        """Per-token loss [M] and the sums that describe it."""
        if objective == "sft":
            return negative_log_likelihood(trainer_logprobs), StepSums()
        algorithm = self._config.algorithm
        per_token, clipped = clipped_surrogate(
            trainer_logprobs,
            batch.sampler_logprobs,
            batch.advantages,
            clip_low=algorithm.clip_low,
            clip_high=algorithm.clip_high,
        )
        # KL(sampler || trainer), estimated on the sampler's own draws.
        kl = kl_k3(batch.sampler_logprobs, trainer_logprobs.detach())
        sums = StepSums(kl=float(kl.sum()), num_clipped=int(clipped.sum()))
        if self._reference is not None:
            with torch.no_grad():
                reference_logprobs, _ = self._reference(batch)
            kl_reference = kl_k3(trainer_logprobs, reference_logprobs)
            per_token = per_token + algorithm.kl_coef * kl_reference  # GRPO Eq. 3
            sums.kl_reference = float(kl_reference.detach().sum())
        return per_token, sums

    def _build_module(self) -> TreeLogprobs:
        from transformers import AutoModelForImageTextToText

        model_config = self._config.model
        try:
            model = AutoModelForImageTextToText.from_pretrained(
                model_config.path,
                dtype=getattr(torch, model_config.dtype),
                attn_implementation=model_config.attention,
                trust_remote_code=self._config.processor.trust_remote_code,
            )
        except (OSError, ValueError) as error:
            raise ConfigError(f"model.path={model_config.path!r} cannot be loaded: {error}") from error
        if self._config.trainer.gradient_checkpointing:
            model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
        model.train()
        return TreeLogprobs(
            model, temperature=self._config.rollout.temperature, banned_token_ids=self._banned
        )

    def _build_reference(self) -> Any:
        """The starting model, frozen, its parameters split over the ranks too."""
        import deepspeed

        module = self._build_module().requires_grad_(False)
        engine, *_ = deepspeed.initialize(model=module, config=_deepspeed_config(self._config))
        engine.eval()  # DeepSpeed's returns nothing
        return engine

    def _named_parameters(self) -> list[tuple[str, Any]]:
        return list(self._engine.module.model.named_parameters())


def _worst_difference(trainer_logprobs: torch.Tensor, batch: MicroBatch) -> tuple[float, str]:
    """Largest |trainer - sampler| of a micro-batch and the sample it is in."""
    if not len(batch.target_ids):
        return 0.0, ""
    difference = np.abs(trainer_logprobs.float().cpu().numpy() - batch.sampler_logprobs)
    difference = np.nan_to_num(
        difference, nan=np.inf, posinf=np.inf
    )  # nan compares as neither larger nor smaller
    token = int(difference.argmax())
    return float(difference[token]), batch.token_sample_ids[int(batch.token_rows[token])]


def _deepspeed_config(config: Config) -> Mapping[str, Any]:
    zero: dict[str, Any] = {"stage": 3, "overlap_comm": False}
    if config.trainer.offload_optimizer:
        zero["offload_optimizer"] = {"device": "cpu"}
    return {
        "train_micro_batch_size_per_gpu": 1,
        "gradient_accumulation_steps": 1,  # the boundary is set by hand: micro-batches vary in number
        "gradient_clipping": config.optim.max_grad_norm,
        "zero_optimization": zero,
        "zero_allow_untested_optimizer": True,
        "bf16": {"enabled": config.model.dtype == "bfloat16"},
    }


def _make_leaves(module: TreeLogprobs) -> None:
    """Let ZeRO-3 fetch a whole block at once: a hook per linear layer costs more than a small layer.

    DeepSpeed follows such a block's backward pass by its inputs and its output, so these are left alone:
    parts of a block, which may be called by keywords alone (SmolVLM's attention), and a tower whose features
    are picked from its hidden states (LLaVA's), which a hook of transformers takes out early.
    """
    from deepspeed.utils import set_z3_leaf_modules

    model = module.model
    picked = model.model.vision_tower if hasattr(model.config, "vision_feature_layer") else None
    tower = set() if picked is None else set(picked.modules())
    lists = (m for m in model.modules() if isinstance(m, torch.nn.ModuleList) and m not in tower)
    names = set(model._no_split_modules or [])
    classes = {type(layer) for layers in lists for layer in layers if type(layer).__name__ in names}
    if classes:
        set_z3_leaf_modules(module, list(classes))
