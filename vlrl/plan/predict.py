"""One prediction of a run: memory of a rank and of the host, disk, and the trainer's time."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from vlrl.config import Config
from vlrl.engine.arguments import memory_share
from vlrl.placement.layout import Layout, Node, kind_of, lay_out, resolved
from vlrl.plan.duration import train_flops, train_seconds
from vlrl.plan.memory import MOMENT_BYTES, RankMemory, rank_memory
from vlrl.plan.shapes import ModelShape, read_shape
from vlrl.plan.workload import Prompts, Workload, workload

GIB = 2**30
ENGINE_PROCESS_BYTES = 1 * GIB
"""The engine's libraries and buffers on a CPU."""
ENGINE_ASLEEP_BYTES = 2 * GIB
"""Of a GPU, that an engine keeps while the trainer has it: context, CUDA graphs, NCCL; assumed."""
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
        num_nodes: machines like it.
        gpus_per_node: GPUs of each; None is as many as a config asks for.
    """

    device: str
    memory_bytes: int
    rate: float
    num_nodes: int = 1
    gpus_per_node: int | None = None

    def nodes(self, config: Config, *, generate: bool) -> list[Node]:
        """The nodes that a run is laid out on."""
        if self.gpus_per_node is not None:
            return [Node(f"node {number}", self.gpus_per_node, 0.0) for number in range(self.num_nodes)]
        ranks = config.trainer.num_ranks or config.trainer.sequence_parallel
        engines = (config.generator.num_replicas or 1) * config.generator.tensor_parallel_size * generate
        apart = kind_of(config, generate=generate) == "split"
        return [Node("node 0", ranks + engines if apart else max(ranks, engines), 0.0)]


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run needs of a machine.

    Attributes:
        shape: of the model.
        work: of one step.
        memory: of one rank.
        engine_bytes: of an engine on its device: weights and KV cache.
        engine_floor_bytes: the least an engine can work with: its weights and the KV cache of one sequence.
        needed_bytes: of the fullest GPU, in the phase in which it is fullest; of the host on a CPU, all
            processes together.
        layout: who is on which GPU; None on a CPU.
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
    layout: Layout | None
    checkpoint_bytes: int
    disk_bytes: int
    train_flops: float
    train_seconds: float

    @property
    def num_gpus(self) -> int:
        """GPUs that ranks and engines have; 0 on a CPU."""
        return self.layout.num_gpus if self.layout else 0

    @property
    def engine_fits(self) -> bool:
        """Whether the engine's share holds the model and a sequence."""
        return self.engine_floor_bytes <= self.engine_bytes

    def fits(self, machine: PlannedMachine) -> bool:
        """Whether the machine's memory is enough for ranks and engines."""
        return self.needed_bytes <= machine.memory_bytes and self.engine_fits

    def as_json(self) -> dict[str, Any]:
        """All numbers, in bytes and seconds."""
        return (
            asdict(self)
            | {"num_gpus": self.num_gpus}
            | {"num_params": self.shape.num_params, "num_trained": self.shape.num_trained}
        )


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
    layout = None
    if machine.device == "cuda":
        layout = lay_out(config, machine.nodes(config, generate=engine), generate=engine)
        config = resolved(config, layout)
    work = workload(shape, prompts, config)
    memory = rank_memory(shape, work, config, machine.device)
    ranks, generator = config.trainer.world_size, config.generator
    parallel = generator.tensor_parallel_size
    weights = shape.num_params * shape.weight_bytes
    one_sequence = kv_bytes_per_token(shape) * generator.max_model_len
    if machine.device == "cpu":
        cache = generator.cpu_kv_cache_gib * GIB
        reserved = weights + cache + ENGINE_PROCESS_BYTES
        floor = weights + one_sequence + ENGINE_PROCESS_BYTES
        engines = reserved * (generator.num_replicas or 1) * engine
        needed = ranks * memory.peak + memory.segment + engines + int(config.ray.object_store_gib * GIB)
    else:
        reserved = int(machine.memory_bytes * memory_share(generator, on_gpu=True))
        floor = (weights + one_sequence) // parallel + ENGINE_BUFFER_BYTES
        by_turns = layout is not None and layout.takes_turns
        training = memory.peak + (ENGINE_ASLEEP_BYTES if by_turns else 0)
        generating = reserved * engine + (memory.process if by_turns else 0)
        needed = max(training, generating)
    flops = train_flops(shape, work, config)
    checkpoint = checkpoint_bytes(shape, config)
    return Plan(
        shape=shape,
        work=work,
        memory=memory,
        engine_bytes=reserved * engine,
        engine_floor_bytes=floor * engine,
        needed_bytes=needed,
        layout=layout,
        checkpoint_bytes=checkpoint,
        # The next one is written aside before the oldest is removed.
        disk_bytes=(min(config.checkpoint.keep, _num_saved(config)) + (_num_saved(config) > 1)) * checkpoint
        + weights,
        train_flops=flops,
        train_seconds=train_seconds(flops, ranks, machine.rate, machine.device),
    )


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
