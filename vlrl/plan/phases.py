"""Memory of every GPU and node of a layout, in each phase of a step: training, generation, the hand-over.

Where ranks and engines take turns, one of them has given its memory up in every phase; what it keeps is
counted with the other's.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from vlrl.config import Config
from vlrl.engine.arguments import memory_share
from vlrl.model.lora import sent_alone
from vlrl.model.parts import VISION_PARTS
from vlrl.placement.layout import Layout
from vlrl.plan.memory import RankMemory
from vlrl.plan.shapes import ModelShape

GIB = 2**30
ENGINE_PROCESS_BYTES = 1 * GIB
"""The engine's libraries and buffers on a CPU."""
ENGINE_ASLEEP_BYTES = 2 * GIB
"""Of a GPU, that an engine keeps while the trainer has it: context, CUDA graphs, NCCL; assumed."""
ENGINE_BUFFER_BYTES = 2 * GIB
"""Of a GPU, that an engine needs beside weights and KV cache: context, one pass's activations; assumed."""
HOST_BYTES_OF_RANK = 2 * GIB
"""Host memory of a rank's process on a GPU, its libraries; assumed."""
HOST_BYTES_OF_ENGINE = 3 * GIB
"""The same of an engine's process on each of its GPUs; assumed."""
IMAGE_CACHE_BYTES = 4 * GIB
"""Host memory for processed images that an engine keeps at most (vLLM's mm_processor_cache_gb)."""
HOST_BYTES_OF_DRIVER = 3 * GIB
"""Host memory of the driver and of Ray's own processes on the first node; assumed."""
HOST_BYTES_OF_WORKER = 2 * GIB
"""Host memory of a rollout worker: 0.6 GiB were seen on a CPU, and an episode keeps its images; assumed."""
PINNED = 1.5
"""Host memory taken for a byte of copied states: torch makes pinned blocks powers of two, which is 1 to 2."""


@dataclass(frozen=True, slots=True)
class EngineMemory:
    """Bytes of an engine on each of its devices.

    Attributes:
        reserved: weights, KV cache and buffers.
        floor: the least it can work with: weights, the KV cache of one sequence, buffers.
        weights: its share of them.
    """

    reserved: int
    floor: int
    weights: int


@dataclass(frozen=True, slots=True)
class GpuMemory:
    """Bytes of one GPU by phase.

    Attributes:
        node: its node's name.
        gpu: index in the node.
        processes: that have it, such as "rank 0".
        training: while the trainer computes, and writes the weights.
        generation: while engines generate.
        hand_over: while engines load weights, without a KV cache yet.
    """

    node: str
    gpu: int
    processes: tuple[str, ...]
    training: int
    generation: int
    hand_over: int

    @property
    def peak(self) -> int:
        """Bytes in the phase in which it is fullest."""
        return max(self.training, self.generation, self.hand_over)


@dataclass(frozen=True, slots=True)
class HostMemory:
    """Bytes of one node's host memory.

    Attributes:
        node: its name.
        processes: libraries of ranks, engines and driver, Ray's object store, processed images.
        copies: weights and states that ranks and engines keep here while another has their GPU.
        offloaded: weights and states that are here all the time.
        segments: of the weights, in /dev/shm.
        features: of images, which ranks keep of a frozen tower.
    """

    node: str
    processes: int
    copies: int
    offloaded: int
    segments: int
    features: int

    @property
    def total(self) -> int:
        """Bytes of all parts."""
        return self.processes + self.copies + self.offloaded + self.segments + self.features


def engine_memory(shape: ModelShape, config: Config, machine_bytes: int, device: str) -> EngineMemory:
    """What an engine reserves, and needs at least.

    Args:
        shape: of the model.
        config: the whole config.
        machine_bytes: of a GPU.
        device: "cpu" or "cuda".
    """
    generator = config.generator
    weights = shape.num_params * shape.weight_bytes
    one_sequence = kv_bytes_per_token(shape) * generator.max_model_len
    if device == "cpu":
        cache = generator.cpu_kv_cache_gib * GIB
        beside = weights + ENGINE_PROCESS_BYTES
        return EngineMemory(beside + cache, beside + one_sequence, weights)
    parallel = generator.tensor_parallel_size
    return EngineMemory(
        reserved=int(machine_bytes * memory_share(generator, on_gpu=True)),
        floor=(weights + one_sequence) // parallel + ENGINE_BUFFER_BYTES,
        weights=weights // parallel,
    )


def kv_bytes_per_token(shape: ModelShape) -> int:
    """Bytes of a token in the engine's cache: keys and values of all layers that attend."""
    return 2 * shape.language.num_attending * shape.language.key_heads * shape.weight_bytes


def gpu_memories(
    layout: Layout, shape: ModelShape, rank: RankMemory, engine: EngineMemory, config: Config
) -> list[GpuMemory]:
    """Every GPU that has a process, in the order of nodes and GPUs."""
    layer = max(shape.language.largest_layer, shape.vocab * shape.language.hidden) * shape.weight_bytes
    training = max(
        rank.peak, rank.kept + rank.gradients + rank.process + _sent_at_once(layout, config, layer)
    )
    loading = engine.weights + layer // config.generator.tensor_parallel_size + ENGINE_BUFFER_BYTES
    if layout.takes_turns:
        of_rank = training, rank.process, rank.process
        of_engine = ENGINE_ASLEEP_BYTES, engine.reserved, loading
    else:
        of_rank = training, training, training
        of_engine = engine.reserved, engine.reserved, engine.reserved
    found = []
    for (node, gpu), names in layout.processes().items():
        if gpu is None and layout.on_gpu:  # rollout workers
            continue
        by_kind = {"rank": of_rank, "engine": of_engine, "worker": (0, 0, 0)}
        kinds = [by_kind[name.split()[0]] for name in names]
        phases = (sum(of_kind) for of_kind in zip(*kinds, strict=True))
        found.append(GpuMemory(layout.nodes[node].name, gpu or 0, names, *phases))
    return found


def _sent_at_once(layout: Layout, config: Config, layer: int) -> int:
    """Two buckets as ranks gather them, one ahead, and one as it is sent; on one node there are none."""
    alone = len({slot.node for slot in layout.ranks}) == 1 and config.weights.transport == "shared_memory"
    return 0 if alone or not layout.engines else 3 * max(int(config.weights.bucket_mib * 2**20), layer)


def host_memories(
    layout: Layout, shape: ModelShape, rank: RankMemory, engine: EngineMemory, config: Config
) -> list[HostMemory]:
    """Every node that has a process, and the first one, which has the driver."""
    ranks, engines, workers = (
        Counter(slot.node for slot in slots) for slots in (layout.ranks, layout.engines, layout.workers)
    )
    parallel = config.generator.tensor_parallel_size
    asleep = engine.weights * parallel if sent_alone(config) is not None else 0  # else nobody keeps them
    is_frozen = not {*VISION_PARTS} & {part for part, count in shape.trained.items() if count}
    store = 0 if config.ray.address else int(config.ray.object_store_gib * GIB)
    found = []
    for node in sorted({0, *ranks, *engines}):
        num_ranks, num_engines = ranks[node], engines[node]
        copied = num_ranks * rank.kept + num_engines * asleep if layout.takes_turns else 0
        found.append(
            HostMemory(
                node=layout.nodes[node].name,
                processes=num_ranks * HOST_BYTES_OF_RANK
                + num_engines * (parallel * HOST_BYTES_OF_ENGINE + IMAGE_CACHE_BYTES)
                + workers[node] * HOST_BYTES_OF_WORKER
                + (HOST_BYTES_OF_DRIVER + store if node == 0 else 0),
                copies=int(PINNED * copied),
                offloaded=num_ranks * rank.host,
                segments=rank.segment if num_engines else 0,
                features=num_ranks * int(config.vision_cache.gib * GIB) if is_frozen else 0,
            )
        )
    return found
