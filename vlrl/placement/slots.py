"""The machines of a cluster, and where on them one process runs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Node:
    """One machine of a cluster.

    Attributes:
        name: its address, or another name that no other has.
        num_gpus: whole GPUs.
        num_cpus: cores, as the cluster counts them.
        id: by which the cluster finds it again.
    """

    name: str
    num_gpus: int
    num_cpus: float
    id: str = ""


@dataclass(frozen=True, slots=True)
class Slot:
    """Where one process runs.

    Attributes:
        node: index into the layout's nodes.
        gpus: indices of its GPUs among the node's; none on a CPU.
        num_cpus: cores it reserves.
    """

    node: int
    gpus: tuple[int, ...]
    num_cpus: float
