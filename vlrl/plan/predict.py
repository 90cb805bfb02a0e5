"""One prediction of a run, and the changes that would make it fit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from vlrl.config import Config
from vlrl.plan.duration import train_flops, train_seconds
from vlrl.plan.memory import RankMemory, rank_memory
from vlrl.plan.shapes import ModelShape, read_shape
from vlrl.plan.workload import Prompts, Workload, workload

GIB = 2**30
ENGINE_PROCESS_BYTES = 1 * GIB
"""The engine's libraries and buffers on a CPU."""


@dataclass(frozen=True, slots=True)
class Machine:
    """What there is.

    Attributes:
        device: "cpu" or "cuda".
        memory_bytes: of one GPU; of the host on a CPU.
        rate: matmul operations/s of one rank's device.
    """

    device: str
    memory_bytes: int
    rate: float


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run needs of a machine.

    Attributes:
        shape: of the model.
        work: of one step.
        memory: of one rank.
        engine_bytes: of the engines on the same device: weights and KV cache.
        needed_bytes: of a GPU that a rank and the engine share; of the host on a CPU, all processes together.
        train_flops: of one step.
        train_seconds: of one step without drawing, rewards and sync.
    """

    shape: ModelShape
    work: Workload
    memory: RankMemory
    engine_bytes: int
    needed_bytes: int
    train_flops: float
    train_seconds: float

    def as_json(self) -> dict[str, Any]:
        """All numbers, in bytes and seconds."""
        return asdict(self) | {"num_params": self.shape.num_params, "num_trained": self.shape.num_trained}


def predict(config: Config, prompts: Prompts, machine: Machine, shape: ModelShape | None = None) -> Plan:
    """Predict a run; `shape` is read from model.path unless given.

    Raises:
        ConfigError: see `read_shape`.
    """
    shape = shape or read_shape(config)
    work = workload(shape, prompts, config)
    memory = rank_memory(shape, work, config, machine.device)
    ranks = config.trainer.num_ranks
    if machine.device == "cpu":
        weights = shape.num_params * shape.weight_bytes
        engine = weights + config.generator.cpu_kv_cache_gib * GIB + ENGINE_PROCESS_BYTES
        engine *= config.generator.num_replicas
        needed = ranks * memory.peak + memory.segment + engine + int(config.ray.object_store_gib * GIB)
    else:
        engine = int(machine.memory_bytes * config.generator.gpu_memory_utilization)
        needed = memory.peak + engine
    flops = train_flops(shape, work, config)
    seconds = train_seconds(flops, ranks, machine.rate, machine.device)
    return Plan(shape, work, memory, engine, needed, flops, seconds)


def fitting_changes(config: Config, prompts: Prompts, machine: Machine) -> list[tuple[str, Plan]]:
    """Changes of the config that make it fit, the mildest first, each tried; all of them if none does alone.

    Returns:
        [("key=value …", the plan with it)], empty if nothing helps.
    """
    found: list[tuple[str, Plan]] = []
    together, keys = config, list[str]()
    num_heads = read_shape(config).language.num_heads
    for key, changed in _changes(config, machine, num_heads):
        plan = predict(changed, prompts, machine)
        if plan.needed_bytes <= machine.memory_bytes:
            found.append((key, plan))
    if found:
        return found
    for key, changed in _changes_in_turn(config, machine, num_heads):
        together, keys = changed, [*keys, key]
        plan = predict(together, prompts, machine)
        if plan.needed_bytes <= machine.memory_bytes:
            return [(" ".join(keys), plan)]
    return []


def _changes(config: Config, machine: Machine, num_heads: int) -> Iterator[tuple[str, Config]]:
    """Single changes, from those that only cost time to those that train less."""
    trainer, floor = config.trainer, config.generator.max_model_len
    if trainer.gradient_checkpointing is not True:
        yield "trainer.gradient_checkpointing=true", _with(config, "trainer", gradient_checkpointing=True)
    if trainer.max_tokens_per_micro_batch > floor:
        tokens = max(floor, trainer.max_tokens_per_micro_batch // 4)
        key = f"trainer.max_tokens_per_micro_batch={tokens}"
        yield key, _with(config, "trainer", max_tokens_per_micro_batch=tokens)
    if machine.device == "cuda" and not trainer.offload_optimizer:
        yield "trainer.offload_optimizer=true", _with(config, "trainer", offload_optimizer=True)
    size = 2 * trainer.sequence_parallel
    if machine.device == "cuda" and trainer.num_ranks % size == 0 and num_heads % size == 0:
        yield f"trainer.sequence_parallel={size}", _with(config, "trainer", sequence_parallel=size)
    if config.model.dtype == "float32":
        yield "model.dtype=bfloat16", _with(config, "model", dtype="bfloat16")
    shares_memory = machine.device == "cpu" and config.weights.transport == "shared_memory"
    if shares_memory and config.lora is not None and config.lora.sync == "merged":
        yield "lora.sync=adapter", _with(config, "lora", sync="adapter")
    if not config.model.freeze and config.lora is None:
        frozen = ["vision_tower", "projector"]
        yield "model.freeze=[vision_tower,projector]", _with(config, "model", freeze=frozen)
    if machine.device == "cuda":
        ranks = trainer.num_ranks * 2
        yield f"trainer.num_ranks={ranks}", _with(config, "trainer", num_ranks=ranks)


def _changes_in_turn(config: Config, machine: Machine, num_heads: int) -> Iterator[tuple[str, Config]]:
    """Each change on top of those before it."""
    done: set[str] = set()
    while True:
        following = [
            (k, c) for k, c in _changes(config, machine, num_heads) if k.partition("=")[0] not in done
        ]
        if not following:
            return
        key, config = following[0]
        done.add(key.partition("=")[0])
        yield key, config


def _with(config: Config, section: str, **values: Any) -> Config:
    changed = getattr(config, section).model_copy(update=values)
    return config.model_copy(update={section: changed})
