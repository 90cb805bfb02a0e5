"""One prediction of a run: memory of ranks, GPUs and nodes, disk, and time."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from vlrl.config import Config
from vlrl.errors import ResourceError
from vlrl.placement.layout import Layout, lay_out, resolved
from vlrl.plan.disk import checkpoint_bytes, checkpoints_bytes, rollouts_bytes
from vlrl.plan.duration import train_flops, train_seconds
from vlrl.plan.machine import PlannedMachine as PlannedMachine
from vlrl.plan.memory import RankMemory, rank_memory
from vlrl.plan.phases import GIB as GIB
from vlrl.plan.phases import GpuMemory, HostMemory, engine_memory, gpu_memories, host_memories
from vlrl.plan.shapes import ModelShape, read_shape
from vlrl.plan.step_time import PlannedStep, StepTime, step_time
from vlrl.plan.workload import Prompts, Workload, workload


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
        needed_host_bytes: of the fullest node's host memory beside GPUs; 0 on a CPU.
        layout: who is where.
        gpus: memory of each by phase; none on a CPU.
        hosts: memory of each node beside its GPUs; none on a CPU.
        checkpoint_bytes: of one checkpoint: model, float32 weights, both moments.
        rollouts_bytes: of the rollouts that are kept, about.
        disk_bytes: of the run's folder at its largest: kept checkpoints, the one being written, the model,
            rollouts.
        train_flops: of one step.
        train_seconds: of one step without generation, rewards and sync.
        step: seconds of a step's parts; None on a CPU.
    """

    shape: ModelShape
    work: Workload
    memory: RankMemory
    engine_bytes: int
    engine_floor_bytes: int
    needed_bytes: int
    needed_host_bytes: int
    layout: Layout
    gpus: tuple[GpuMemory, ...]
    hosts: tuple[HostMemory, ...]
    checkpoint_bytes: int
    rollouts_bytes: int
    disk_bytes: int
    train_flops: float
    train_seconds: float
    step: StepTime | None

    @property
    def num_gpus(self) -> int:
        """GPUs that ranks and engines have; 0 on a CPU."""
        return len(self.gpus)

    @property
    def engine_fits(self) -> bool:
        """Whether the engine's share holds the model and a sequence."""
        return self.engine_floor_bytes <= self.engine_bytes

    def host_fits(self, machine: PlannedMachine) -> bool:
        """Whether every node's host memory is enough, as far as it is known."""
        return machine.host_memory_bytes is None or self.needed_host_bytes <= machine.host_memory_bytes

    def fits(self, machine: PlannedMachine) -> bool:
        """Whether the machine's memory is enough for ranks and engines."""
        return self.needed_bytes <= machine.memory_bytes and self.engine_fits and self.host_fits(machine)

    def as_json(self) -> dict[str, Any]:
        """All numbers, in bytes and seconds."""
        tree = asdict(self)
        del tree["layout"]  # gpus and hosts say who is where
        if self.step is not None:
            tree["step"] |= {
                "total": self.step.total,
                "bottleneck": self.step.bottleneck,
                "tokens_per_gpu": self.step.tokens_per_gpu,
            }
        return tree | {
            "num_gpus": self.num_gpus,
            "num_ranks": len(self.layout.ranks),
            "num_replicas": len(self.layout.engines),
            "placement": self.layout.kind,
            "num_params": self.shape.num_params,
            "num_trained": self.shape.num_trained,
        }


def predict(
    config: Config,
    prompts: Prompts,
    machine: PlannedMachine,
    shape: ModelShape | None = None,
    *,
    engine: bool = True,
) -> Plan:
    """Predict a run.

    Where a config takes all GPUs there are and the machine does not say how many, the fewest of 1, 2, 4 and
    8 are taken on which it fits; if it fits on none of them, the fewest on which it can run.

    Args:
        config: the whole config.
        prompts: what the config does not say of its data.
        machine: that it is to run on.
        shape: read from model.path unless given.
        engine: false for supervised training, which has none.

    Raises:
        ConfigError: see `read_shape`.
        ResourceError: if there are too few GPUs for the ranks and engines that are asked for.
    """
    shape = shape or read_shape(config)
    smallest: Plan | None = None
    sizes = list(machine.sizes(config))
    for size in sizes:
        try:
            plan = _predict(config, prompts, size, shape, engine=engine)
        except ResourceError:
            if smallest is None and size is sizes[-1]:
                raise
            continue
        if plan.fits(size):
            return plan
        smallest = smallest or plan
    assert smallest is not None  # the last size raises otherwise
    return smallest


def _predict(
    config: Config, prompts: Prompts, machine: PlannedMachine, shape: ModelShape, *, engine: bool
) -> Plan:
    here = engine and not config.generator.servers  # servers elsewhere take nothing of these machines
    layout = lay_out(config, machine.nodes(config, generate=here), generate=engine)
    config = resolved(config, layout)
    work = workload(shape, prompts, config)
    memory = rank_memory(shape, work, config, machine.device)
    reserved = engine_memory(shape, config, machine.memory_bytes, machine.device)
    gpus: list[GpuMemory] = []
    hosts: list[HostMemory] = []
    step = None
    if machine.device == "cpu":
        engines = reserved.reserved * len(layout.engines)
        needed = len(layout.ranks) * memory.peak + memory.segment + engines
        needed += int(config.ray.object_store_gib * GIB)
    else:
        gpus = gpu_memories(layout, shape, memory, reserved, config)
        hosts = host_memories(layout, shape, memory, reserved, config)
        needed = max(gpu.peak for gpu in gpus)
        step = step_time(PlannedStep(shape, work, prompts, config, machine, layout, memory, reserved))
    flops = train_flops(shape, work, config)
    checkpoint = checkpoint_bytes(shape, config)
    rollouts = rollouts_bytes(prompts, work, config) if engine else 0
    return Plan(
        shape=shape,
        work=work,
        memory=memory,
        engine_bytes=reserved.reserved * here,
        engine_floor_bytes=reserved.floor * here,
        needed_bytes=needed,
        needed_host_bytes=max((host.total for host in hosts), default=0),
        layout=layout,
        gpus=tuple(gpus),
        hosts=tuple(hosts),
        checkpoint_bytes=checkpoint,
        rollouts_bytes=rollouts,
        disk_bytes=checkpoints_bytes(checkpoint, config) + shape.num_params * shape.weight_bytes + rollouts,
        train_flops=flops,
        train_seconds=step.training
        if step
        else train_seconds(flops, len(layout.ranks), machine.rate, machine.device),
        step=step,
    )
