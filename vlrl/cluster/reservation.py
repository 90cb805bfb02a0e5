"""The cluster's nodes, and a run's GPUs and cores in it: reserved at once, a bundle each, then given out."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import ray
from ray.util.placement_group import placement_group, placement_group_table, remove_placement_group
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy, PlacementGroupSchedulingStrategy

from vlrl.cluster.calls import fetch, fetch_all
from vlrl.cluster.processes import Processes
from vlrl.errors import EngineError, NodeLost, ResourceError
from vlrl.placement.layout import Layout, Node, Slot
from vlrl.process.network import interface_of, rendezvous_port

T = TypeVar("T")

QUIET_ENVIRONMENT: Mapping[str, str] = {
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    "TRANSFORMERS_VERBOSITY": "error",
    "TOKENIZERS_PARALLELISM": "false",
    # An actor sees the GPUs of CUDA_VISIBLE_DEVICES below: ranks and engines share some, which Ray's own
    # fractions of a GPU cannot say.
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
}

# Engine and trainer take turns on the same cores: an idle one must sleep, not spin at a barrier.
CPU_ENVIRONMENT: Mapping[str, str] = {"KMP_BLOCKTIME": "0", "OMP_WAIT_POLICY": "PASSIVE"}

INTERFACE_VARIABLES = ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME")

POLL_S = 2.0
"""Seconds between looks at the nodes while something is waited for."""

NODE_ID = "ray.io/node-id"
"""Ray's label of a node, by which a bundle is put on it."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where an actor is started.

    Attributes:
        node_id: Ray's, in hex.
        address: of the node, as others reach it.
        num_cpus: cores to reserve.
        num_threads: for its computing, so that actors of one kind share the node's cores.
        gpus: what CUDA calls its GPUs on that node; none on a CPU.
        strategy: Ray's, into the actor's bundle.
        interface: the network interface to reach other nodes by; None where no other node takes part.
        role: of the actor, in words, and `number` among those; `processes` takes it up, if it is watched.
    """

    node_id: str
    address: str
    num_cpus: float
    num_threads: int
    gpus: tuple[str, ...]
    strategy: Any
    interface: str | None = None
    role: str = ""
    number: int = 0
    processes: Processes | None = field(default=None, compare=False, repr=False)

    @property
    def is_here(self) -> bool:
        """Whether it is on the driver's node."""
        return bool(self.node_id == ray.get_runtime_context().get_node_id())


def nodes() -> list[Node]:
    """The cluster's living nodes: this one first, then by address."""
    here = ray.get_runtime_context().get_node_id()
    alive = sorted(
        (node for node in ray.nodes() if node["Alive"]),
        key=lambda node: (node["NodeID"] != here, node["NodeManagerAddress"], node["NodeID"]),
    )
    return [
        Node(
            name=node["NodeManagerAddress"],
            num_gpus=int(node["Resources"].get("GPU", 0)),
            num_cpus=float(node["Resources"].get("CPU", 0)),
            id=node["NodeID"],
        )
        for node in alive
    ]


def driver_place(num_processes: int = 1, num_cpus: float = 0) -> Place:
    """A place on the driver's node with nothing reserved but cores, for one of num_processes like it."""
    here = ray.get_runtime_context().get_node_id()
    strategy = NodeAffinitySchedulingStrategy(here, soft=False)
    return Place(here, "127.0.0.1", num_cpus, num_threads(here, num_processes), (), strategy)


def num_threads(node_id: str, num_processes: int) -> int:
    """Threads for each of num_processes that compute on a node at the same time."""
    if node_id == ray.get_runtime_context().get_node_id():
        cores = len(os.sched_getaffinity(0))
    else:
        cores = next(int(n["Resources"].get("CPU", 1)) for n in ray.nodes() if n["NodeID"] == node_id)
    return max(1, cores // num_processes)


def run_on(node_id: str, work: Callable[..., T], *arguments: Any) -> T:
    """Call a function in a process on a node.

    Raises:
        VlrlError: what it raised.
    """
    strategy = NodeAffinitySchedulingStrategy(node_id, soft=False)
    remote = ray.remote(num_cpus=0)(work).options(scheduling_strategy=strategy)
    value: T = fetch(remote.remote(*arguments))
    return value


def meeting_point(
    places: Sequence[Place], port: int | None = None, *, with_others: bool = False
) -> tuple[str, int]:
    """(address, free port) of the first place's node, where processes at all places, or others, can meet.

    Raises:
        ResourceError: if a wanted port is in use.
    """
    if all(place.is_here for place in places) and not with_others:
        return "127.0.0.1", rendezvous_port(port)
    first = places[0]
    return first.address, run_on(first.node_id, rendezvous_port, port)


class Reservation:
    """The bundles of a layout in Ray: one a GPU, and one an actor that has none.

    Attributes:
        layout: what is reserved.
        ranks: a place for each rank.
        engines: a place for each replica.
        workers: a place for each rollout worker.
        addresses: of the nodes that are part of it, by Ray's id.
        gpus: what CUDA calls the GPUs of each of them, by the same.
    """

    def __init__(self, layout: Layout, timeout_s: float, processes: Processes | None = None) -> None:
        """Reserve; waits up to timeout_s for what other runs have.

        `processes` takes up what is started in the places.

        Raises:
            ResourceError: if it takes longer; names the bundles that wait, and for what.
        """
        self.layout, self._processes = layout, processes
        self._bundles = _bundles(layout)
        self._group = placement_group(
            [bundle.resources for bundle in self._bundles],
            strategy="PACK",
            bundle_label_selector=[{NODE_ID: layout.nodes[bundle.node].id} for bundle in self._bundles],
        )
        if not self._group.wait(timeout_s):
            waiting = self._waiting()
            self.close()
            raise ResourceError(
                f"after ray.start_timeout_s={timeout_s:g} Ray has no room for {waiting}; end what else runs "
                "there (`ray status` shows it), wait longer, or lower trainer.num_ranks and "
                "generator.num_replicas"
            )
        self._devices = self._cuda_devices()
        self.addresses = layout.addresses
        self.gpus = {
            layout.nodes[number].id: [name for (node, _), name in self._devices.items() if node == number]
            for number, _ in self._devices
        }
        self._interfaces = self._find_interfaces()
        self.ranks = self._places("rank", layout.ranks)
        self.engines = self._places("engine", layout.engines)
        self.workers = self._places("worker", layout.workers)

    def close(self) -> None:
        """Give everything back; actors that are still there are killed."""
        remove_placement_group(self._group)

    def _waiting(self) -> str:
        homes = placement_group_table(self._group)["bundles_to_node_id"]
        waiting = [bundle for index, bundle in enumerate(self._bundles) if not homes.get(index)]
        return "; ".join(f"{b} on node {self.layout.nodes[b.node].name}" for b in waiting)

    def _cuda_devices(self) -> dict[tuple[int, int | None], str]:
        """What CUDA calls each GPU of the layout: asked in each bundle, for Ray chooses among a node's."""
        if not self.layout.on_gpu:
            return {}
        asked = ray.remote(num_cpus=0, num_gpus=1)(_own_gpu)
        with_gpu = [index for index, bundle in enumerate(self._bundles) if bundle.gpu is not None]
        refs = [asked.options(scheduling_strategy=self._strategy(index)).remote() for index in with_gpu]
        owners = [self._bundles[index] for index in with_gpu]
        return {(b.node, b.gpu): name for b, name in zip(owners, fetch_all(refs), strict=True)}

    def _find_interfaces(self) -> dict[str, str | None]:
        """The interface of each node's address, if there is more than one node."""
        if len(self.addresses) == 1:
            return {}
        return {node: run_on(node, interface_of, address) for node, address in self.addresses.items()}

    def _strategy(self, bundle: int) -> Any:
        return PlacementGroupSchedulingStrategy(self._group, placement_group_bundle_index=bundle)

    def _places(self, role: str, alike: Sequence[Slot]) -> list[Place]:
        return [self._place(index, alike, role) for index in range(len(alike))]

    def _place(self, index: int, alike: Sequence[Slot], role: str) -> Place:
        slot = alike[index]
        node = self.layout.nodes[slot.node]
        beside = sum(other.node == slot.node for other in alike)
        bundle = next(number for number, b in enumerate(self._bundles) if any(s is slot for s in b.slots))
        return Place(
            node_id=node.id,
            address=node.name,
            num_cpus=slot.num_cpus,
            num_threads=num_threads(node.id, beside),
            gpus=tuple(self._devices[slot.node, gpu] for gpu in slot.gpus),
            strategy=self._strategy(bundle),
            interface=self._interfaces.get(node.id),
            role=role,
            number=index,
            processes=self._processes,
        )


@dataclass(frozen=True, slots=True)
class _Bundle:
    """A GPU, or none, and the cores of the actors that are started in it.

    Attributes:
        node: index into the layout's nodes.
        gpu: index among the node's, None on a CPU.
        slots: of those actors. One with several GPUs is started in the bundle of its first.
    """

    node: int
    gpu: int | None
    slots: tuple[Slot, ...]

    @property
    def resources(self) -> dict[str, float]:
        """What Ray is asked for."""
        wanted = {"GPU": float(self.gpu is not None), "CPU": sum(slot.num_cpus for slot in self.slots)}
        return {name: count for name, count in wanted.items() if count}

    def __str__(self) -> str:
        return " and ".join(f"{count:g} {name}" for name, count in self.resources.items())


def _bundles(layout: Layout) -> list[_Bundle]:
    slots = (*layout.ranks, *layout.engines, *layout.workers)
    on_gpu = [slot for slot in slots if slot.gpus]
    return [
        _Bundle(node, gpu, tuple(s for s in on_gpu if (s.node, s.gpus[0]) == (node, gpu)))
        for node, gpu in sorted({(slot.node, gpu) for slot in on_gpu for gpu in slot.gpus})
    ] + [_Bundle(slot.node, None, (slot,)) for slot in slots if not slot.gpus]


def _own_gpu() -> str:
    return str(ray.get_runtime_context().get_accelerator_ids()["GPU"][0])


def fetch_from(place: Place, ref: Any, *, timeout_s: float | None = None, late: str = "") -> Any:
    """`fetch`, for as long as the place's node is there: Ray waits without an end for one that is not.

    Raises:
        NodeLost: if it has left the cluster.
        EngineError: saying `late`, if the value is not there after timeout_s.
    """
    end = None if timeout_s is None else time.monotonic() + timeout_s
    while not ray.wait([ref], timeout=POLL_S)[0]:
        if not any(node["Alive"] and node["NodeID"] == place.node_id for node in ray.nodes()):
            raise NodeLost(f"node {place.address} has left the cluster")
        if end is not None and time.monotonic() > end:
            raise EngineError(late)
    return fetch(ref)


def spawn(cls: type, *args: Any, place: Place, env: Mapping[str, str]) -> Any:
    """Start an actor of `cls` at its place; its constructor runs in the background."""
    env_vars = {**QUIET_ENVIRONMENT, "OMP_NUM_THREADS": str(place.num_threads), **env}
    env_vars |= {"CUDA_VISIBLE_DEVICES": ",".join(place.gpus)} if place.gpus else CPU_ENVIRONMENT
    if place.interface is not None:  # gloo goes by the host's name else, which often means the loopback
        env_vars |= {name: os.environ.get(name, place.interface) for name in INTERFACE_VARIABLES}
    remote = ray.remote(num_cpus=place.num_cpus, num_gpus=0, max_restarts=0)(cls)
    options = {"runtime_env": {"env_vars": env_vars}, "scheduling_strategy": place.strategy}
    actor = remote.options(**options).remote(*args)
    if place.processes is not None:
        place.processes.add(place.role, place.number, place.node_id, actor)
    return actor
