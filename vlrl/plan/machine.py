"""The machines that a run is planned for: described, or this one as it is found."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from vlrl.config import Config
from vlrl.machine.nvidia import nvidia_smi
from vlrl.placement.layout import Node, kind_of
from vlrl.plan.rates import MATMUL, NETWORK

GPUS_OF_A_NODE = 8
"""Of a machine that is not described, at most."""
HIDES_ALL = ("", "-1", "NoDevFiles")
"""Values of CUDA_VISIBLE_DEVICES without a GPU."""


@dataclass(frozen=True, slots=True)
class PlannedMachine:
    """The machines that a run is planned for.

    Attributes:
        device: "cpu" or "cuda".
        memory_bytes: of one GPU; of the host on a CPU.
        rate: matmul operations/s of one rank's device.
        num_nodes: machines like it.
        gpus_per_node: GPUs of each; None is as many as a config asks for.
        host_memory_bytes: of one node; None is unknown, and on a CPU memory_bytes says it.
        network_bytes_per_s: between one node and the others.
    """

    device: str
    memory_bytes: int
    rate: float
    num_nodes: int = 1
    gpus_per_node: int | None = None
    host_memory_bytes: int | None = None
    network_bytes_per_s: float = NETWORK.value

    def nodes(self, config: Config, *, generate: bool) -> list[Node]:
        """The nodes that a run is laid out on; on a CPU one that has cores for everything."""
        if self.device == "cpu":
            return [Node("this host", 0, float("inf"))]
        per_node, num_nodes = self.gpus_per_node, self.num_nodes
        if per_node is None:
            wanted = _asked_for(config, generate=generate)
            per_node = min(wanted, max(GPUS_OF_A_NODE, config.generator.tensor_parallel_size))
            num_nodes = -(-wanted // per_node)
        return [Node(f"node {number}", per_node, float("inf")) for number in range(num_nodes)]

    def sizes(self, config: Config) -> Iterator[PlannedMachine]:
        """Machines to try in turn where the config takes all GPUs there are, and nobody has said how many."""
        if self.device == "cpu" or self.gpus_per_node is not None or config.trainer.num_ranks is not None:
            yield self
            return
        count = 1
        while count <= GPUS_OF_A_NODE:
            yield replace(self, gpus_per_node=count)
            count *= 2


def _asked_for(config: Config, *, generate: bool) -> int:
    """The fewest GPUs that a config's ranks and engines can do with."""
    ranks = config.trainer.num_ranks or config.trainer.sequence_parallel
    if not generate:
        return ranks
    engines = (config.generator.num_replicas or 1) * config.generator.tensor_parallel_size
    return ranks + engines if kind_of(config) == "split" else max(ranks, engines)


def this_machine() -> PlannedMachine:
    """This machine's GPUs, with the smallest one's memory, without making a context; the host without any."""
    gpus = visible_gpus()
    if not gpus:
        return PlannedMachine("cpu", host_memory(), MATMUL["cpu"].value)
    return PlannedMachine(
        "cuda",
        min(gpus),
        MATMUL["cuda"].value,
        gpus_per_node=len(gpus),
        host_memory_bytes=host_memory(),
    )


def visible_gpus() -> list[int]:
    """Bytes of memory of each GPU that Ray finds here: CUDA_VISIBLE_DEVICES hides some."""
    rows = [line.replace(" ", "").split(",") for line in nvidia_smi("index,uuid,memory.total")]
    found = {
        (index, uuid): int(size.removesuffix("MiB")) * 2**20
        for index, uuid, size in rows
        if size.endswith("MiB")  # "[N/A]" where a GPU shares the host's memory
    }
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is None:
        return list(found.values())
    if visible in HIDES_ALL:
        return []
    named = visible.replace(" ", "").split(",")
    return [
        size
        for (index, uuid), size in found.items()
        if any(name == index or (name.startswith("GPU-") and uuid.startswith(name)) for name in named)
    ]


def host_memory() -> int:
    """Bytes of this host, or of the container's limit if that is less."""
    lines = Path("/proc/meminfo").read_text(encoding="utf-8").splitlines()
    total = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemTotal:"))
    limit = Path("/sys/fs/cgroup/memory.max")
    bound = limit.read_text(encoding="utf-8").strip() if limit.is_file() else "max"
    return total if bound == "max" else min(total, int(bound))


def free_bytes(folder: Path) -> int:
    """Free bytes of the disk that a folder is on, or will be."""
    folder = folder.resolve()
    while not folder.exists():
        folder = folder.parent
    return shutil.disk_usage(folder).free
