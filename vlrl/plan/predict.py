"""One prediction of a run: memory of a rank and of the host, disk, and the trainer's time."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from vlrl.config import Config
from vlrl.plan.duration import train_flops, train_seconds
from vlrl.plan.memory import MOMENT_BYTES, RankMemory, rank_memory
from vlrl.plan.shapes import ModelShape, read_shape
from vlrl.plan.workload import Prompts, Workload, workload

GIB = 2**30
ENGINE_PROCESS_BYTES = 1 * GIB
"""The engine's libraries and buffers on a CPU."""
ENGINE_BUFFER_BYTES = 2 * GIB
"""Of a GPU, that an engine needs beside weights and KV cache: context, one pass's activations; assumed."""
MASTER_BYTES = 4
"""Bytes of a trained weight's float32 copy, which a checkpoint holds beside both moments."""


@dataclass(frozen=True, slots=True)
class PlannedMachine:
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
        engine_bytes: of an engine on its device: weights and KV cache.
        engine_floor_bytes: the least an engine can work with: its weights and the KV cache of one sequence.
        needed_bytes: of a GPU that a rank and the engine share, or of the fuller one where they do not; of
            the host on a CPU, all processes together.
        num_gpus: that ranks and engines reserve; 0 on a CPU.
        checkpoint_bytes: of one checkpoint: model, float32 weights, both moments.
        disk_bytes: of the run's folder at its largest: kept checkpoints, the one being written, the model.
        train_flops: of one step.
        train_seconds: of one step without generation, rewards and sync.
    """

    shape: ModelShape
    work: Workload
    memory: RankMemory
    engine_bytes: int
    engine_floor_bytes: int
    needed_bytes: int
    num_gpus: int
    checkpoint_bytes: int
    disk_bytes: int
    train_flops: float
    train_seconds: float

    @property
    def engine_fits(self) -> bool:
        """Whether the engine's share holds the model and a sequence."""
        return self.engine_floor_bytes <= self.engine_bytes

    def fits(self, machine: PlannedMachine) -> bool:
        """Whether the machine's memory is enough for ranks and engines."""
        return self.needed_bytes <= machine.memory_bytes and self.engine_fits

    def as_json(self) -> dict[str, Any]:
        """All numbers, in bytes and seconds."""
        return asdict(self) | {"num_params": self.shape.num_params, "num_trained": self.shape.num_trained}


def predict(
    config: Config,
    prompts: Prompts,
    machine: PlannedMachine,
    shape: ModelShape | None = None,
    *,
    engine: bool = True,
) -> Plan:
    """Predict a run.

    Args:
        config: the whole config.
        prompts: what the config does not say of its data.
        machine: that it is to run on.
        shape: read from model.path unless given.
        engine: false for supervised training, which has none.

    Raises:
        ConfigError: see `read_shape`.
    """
    shape = shape or read_shape(config)
    work = workload(shape, prompts, config)
    memory = rank_memory(shape, work, config, machine.device)
    ranks, generator = config.trainer.num_ranks, config.generator
    parallel = generator.tensor_parallel_size
    weights = shape.num_params * shape.weight_bytes
    one_sequence = kv_bytes_per_token(shape) * generator.max_model_len
    num_gpus = 0
    if machine.device == "cpu":
        cache = generator.cpu_kv_cache_gib * GIB
        reserved = weights + cache + ENGINE_PROCESS_BYTES
        floor = weights + one_sequence + ENGINE_PROCESS_BYTES
        engines = reserved * generator.num_replicas * engine
        needed = ranks * memory.peak + memory.segment + engines + int(config.ray.object_store_gib * GIB)
    else:
        reserved = int(machine.memory_bytes * generator.gpu_memory_utilization)
        floor = (weights + one_sequence) // parallel + ENGINE_BUFFER_BYTES
        apart = not shares_gpu(config)
        needed = max(memory.peak, reserved * engine) if apart else memory.peak + reserved * engine
        whole = generator.num_replicas * (parallel if apart else 1)
        num_gpus = (ranks + whole if apart else max(ranks, whole)) if engine else ranks
    flops = train_flops(shape, work, config)
    checkpoint = checkpoint_bytes(shape, config)
    return Plan(
        shape=shape,
        work=work,
        memory=memory,
        engine_bytes=reserved * engine,
        engine_floor_bytes=floor * engine,
        needed_bytes=needed,
        num_gpus=num_gpus,
        checkpoint_bytes=checkpoint,
        # The next one is written aside before the oldest is removed.
        disk_bytes=(min(config.checkpoint.keep, _num_saved(config)) + (_num_saved(config) > 1)) * checkpoint
        + weights,
        train_flops=flops,
        train_seconds=train_seconds(flops, ranks, machine.rate, machine.device),
    )


def shares_gpu(config: Config) -> bool:
    """Whether an engine is put beside a rank on one GPU, by what both reserve (`vlrl.cluster`)."""
    generator = config.generator
    return generator.tensor_parallel_size == 1 and generator.gpus + config.trainer.gpus_per_rank <= 1


def checkpoint_bytes(shape: ModelShape, config: Config) -> int:
    """One checkpoint: the whole model, and of what is trained the float32 copy and both moments."""
    states = shape.num_trained * (MASTER_BYTES + 2 * MOMENT_BYTES[config.optim.state])
    return (shape.num_params + shape.adapters) * shape.weight_bytes + int(states)


def _num_saved(config: Config) -> int:
    """Checkpoints that a whole run writes, by steps; the last step's is always one."""
    every = config.checkpoint.every
    return -(-config.num_steps // every) if every else 1


def kv_bytes_per_token(shape: ModelShape) -> int:
    """Bytes of a token in the engine's cache: keys and values of all layers."""
    return 2 * shape.language.num_layers * shape.language.key_heads * shape.weight_bytes
