"""Which rank and which engine gets which GPUs: counted from the nodes alone, before anything is started."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal
from urllib.parse import urlsplit

from vlrl.config import Config
from vlrl.config.engine import Transport
from vlrl.environment.listening import is_loopback
from vlrl.errors import ResourceError
from vlrl.placement.slots import Node as Node
from vlrl.placement.slots import Slot as Slot
from vlrl.placement.workers import worker_slots

Kind = Literal["colocated", "split"]
MAX_NAMED = 8
"""Most nodes that an error names."""


@dataclass(frozen=True, slots=True)
class Layout:
    """A slot for every process of a run.

    Attributes:
        kind: colocated: ranks and engines share GPUs and take turns; split: each GPU belongs to one of them.
            On CPUs always colocated: nothing has to be handed over there.
        nodes: of the cluster, those without a slot too.
        ranks: of the trainer, by rank.
        engines: one a replica.
        workers: one a rollout worker; without any the driver plays the episodes itself.
        num_servers: engines that run elsewhere (`generator.servers`), in place of `engines`.
    """

    kind: Kind
    nodes: tuple[Node, ...]
    ranks: tuple[Slot, ...]
    engines: tuple[Slot, ...]
    workers: tuple[Slot, ...] = ()
    num_servers: int = 0

    @property
    def on_gpu(self) -> bool:
        """Whether the processes compute on GPUs."""
        return any(slot.gpus for slot in (*self.ranks, *self.engines))

    @property
    def takes_turns(self) -> bool:
        """Whether a GPU belongs to a rank and to an engine, so that one must give it up for the other."""
        ranks, engines = _gpus_of(self.ranks), _gpus_of(self.engines)
        return bool(ranks & engines)

    @property
    def num_nodes(self) -> int:
        """Nodes with a slot."""
        return len({slot.node for slot in (*self.ranks, *self.engines)})

    @property
    def addresses(self) -> dict[str, str]:
        """Names of the nodes with a slot, by the cluster's id."""
        used = {slot.node for slot in (*self.ranks, *self.engines, *self.workers)}
        return {self.nodes[node].id: self.nodes[node].name for node in sorted(used)}

    @property
    def num_gpus(self) -> int:
        """GPUs with a process."""
        return len(_gpus_of(self.ranks) | _gpus_of(self.engines))

    @property
    def engines_beside_ranks(self) -> bool:
        """Whether every node with an engine has a rank, which can leave weights in the node's memory."""
        return {slot.node for slot in self.engines} <= {slot.node for slot in self.ranks}

    def processes(self) -> dict[tuple[int, int | None], tuple[str, ...]]:
        """Names such as "rank 0" by (node, GPU), in their order; on CPUs by (node, None)."""
        who: dict[tuple[int, int | None], list[str]] = {}
        for kind, slots in (("rank", self.ranks), ("engine", self.engines), ("worker", self.workers)):
            for number, slot in enumerate(slots):
                for gpu in slot.gpus or (None,):
                    who.setdefault((slot.node, gpu), []).append(f"{kind} {number}")
        order = sorted(who, key=lambda place: (place[0], place[1] is None, place[1] or 0))
        return {place: tuple(who[place]) for place in order}

    def lines(self) -> list[str]:
        """GPU by GPU who is there, or node by node on CPUs."""
        return [
            f"{self.nodes[node].name}{'' if gpu is None else f' GPU {gpu}'}: {', '.join(names)}"
            for (node, gpu), names in self.processes().items()
        ]


def lay_out(config: Config, nodes: Sequence[Node], *, train: bool = True, generate: bool = True) -> Layout:
    """Give every process of a run its slot.

    GPUs are taken in the order of the nodes. Ranks lie next to each other, a replica's GPUs in one node.
    `trainer.num_ranks` and `generator.num_replicas` that are null become as many as there is room for: one
    each on CPUs.

    Args:
        config: the whole config.
        nodes: in the order in which they are filled.
        train: false for a run without a trainer.
        generate: false for a run without engines.

    Raises:
        ResourceError: if there are too few GPUs or cores, or a replica is larger than every node.
    """
    nodes, servers = tuple(nodes), len(config.generator.servers) if generate else 0
    if any(node.num_gpus for node in nodes):
        layout = _on_gpus(config, nodes, train=train, generate=generate and not servers)
    else:
        layout = _on_cpus(config, nodes, train=train, generate=generate and not servers)
    if not (train and generate):
        return layout
    workers = worker_slots(config, nodes, layout.ranks, layout.engines)
    return replace(layout, workers=workers, num_servers=servers)


def _on_gpus(config: Config, nodes: tuple[Node, ...], *, train: bool, generate: bool) -> Layout:
    kind = kind_of(config, train=train, generate=generate)
    room = [node.num_gpus for node in nodes]
    num_ranks = _num_ranks(config, sum(room), kind) if train else 0
    ranks = tuple(
        Slot(node, (gpu,), config.trainer.cpus_per_rank)
        for (node, gpu), _ in zip(_each_gpu(nodes), range(num_ranks), strict=False)
    )
    if len(ranks) < num_ranks:
        raise ResourceError(
            f"trainer.num_ranks={num_ranks} needs as many GPUs, as NCCL refuses two on one; the "
            f"cluster has {sum(room)} ({_by_node(nodes, room)}); lower it, or leave it out to take "
            "all there are"
        )
    taken = [0] * len(nodes)
    if kind == "split":
        for slot in ranks:
            taken[slot.node] += 1
    engines = _engines(config, nodes, taken) if generate else ()
    return Layout(kind, nodes, ranks, engines)


def kind_of(config: Config, *, train: bool = True, generate: bool = True) -> Kind:
    """What `placement: auto` means: split where trainer and engines work at the same time."""
    if not (train and generate):
        return "colocated"  # with nobody
    if config.placement == "auto":
        return "split" if config.asynchronous.streams else "colocated"
    return config.placement


def servers_are_here(config: Config) -> bool:
    """Whether no engine is a server on another machine, by the servers' addresses."""
    return all(is_loopback(urlsplit(server).hostname or "") for server in config.generator.servers)


def resolved(config: Config, layout: Layout) -> Config:
    """The config with a layout's numbers of ranks and replicas, and with the weights' transport.

    Raises:
        ResourceError: if the transport that the config asks for cannot reach the engines.
    """
    trainer, generator = config.trainer, config.generator
    if layout.ranks:
        trainer = trainer.model_copy(update={"num_ranks": len(layout.ranks)})
    if num_engines := len(layout.engines) or layout.num_servers:
        generator = generator.model_copy(update={"num_replicas": num_engines})
    weights = config.weights.model_copy(update={"transport": _transport(config, layout)})
    return config.model_copy(update={"trainer": trainer, "generator": generator, "weights": weights})


def _transport(config: Config, layout: Layout) -> Transport:
    transport = config.weights.transport
    beside = layout.engines_beside_ranks
    if layout.num_servers:
        beside = servers_are_here(config) and layout.num_nodes == 1
    if transport == "auto":
        transport = "shared_memory" if beside or not layout.ranks else "broadcast"
    if transport == "shared_memory" and layout.ranks and not beside:
        raise ResourceError(
            "weights.transport=shared_memory: an engine is on a node without a rank, and no rank can write "
            "to its memory; set weights.transport=broadcast, or disk and a weights.folder all nodes have"
        )
    if transport == "broadcast" and layout.takes_turns:
        raise ResourceError(
            "weights.transport=broadcast: NCCL refuses two processes on one GPU, and trainer and engines "
            "share theirs (placement=colocated); set weights.transport=shared_memory, or placement=split"
        )
    return transport


def _on_cpus(config: Config, nodes: tuple[Node, ...], *, train: bool, generate: bool) -> Layout:
    """A rank and an engine side by side, as many pairs on a node as it has cores for."""
    trainer, generator = config.trainer, config.generator
    if generate and generator.max_num_batched_tokens < generator.max_model_len:
        raise ResourceError(
            f"generator.max_num_batched_tokens={generator.max_num_batched_tokens} is below "
            f"generator.max_model_len={generator.max_model_len}: without GPUs an engine takes a prompt in "
            "one step, and the longest would not fit; raise the first, or lower the second"
        )
    num_ranks = (trainer.num_ranks or 1) * train
    num_engines = (generator.num_replicas or 1) * generate
    free = [node.num_cpus for node in nodes]
    ranks: list[Slot] = []
    engines: list[Slot] = []
    for index in range(max(num_ranks, num_engines)):
        pair = [(ranks, trainer.cpus_per_rank)] if index < num_ranks else []
        pair += [(engines, generator.cpus)] if index < num_engines else []
        for slots, num_cpus in pair:
            node = next((n for n, cores in enumerate(free) if cores >= num_cpus), None)
            if node is None:
                raise ResourceError(_too_few_cpus(config, nodes, num_ranks, num_engines))
            free[node] -= num_cpus
            slots.append(Slot(node, (), num_cpus))
    return Layout("colocated", nodes, tuple(ranks), tuple(engines))


def _too_few_cpus(config: Config, nodes: Sequence[Node], num_ranks: int, num_engines: int) -> str:
    needed = num_ranks * config.trainer.cpus_per_rank + num_engines * config.generator.cpus
    found = sum(node.num_cpus for node in nodes)
    return (
        f"the run reserves {needed:g} cpus, Ray has {found:g} "
        f"({_by_node(nodes, [node.num_cpus for node in nodes])}); lower "
        "trainer.num_ranks, trainer.cpus_per_rank, generator.num_replicas or generator.cpus"
    )


def _num_ranks(config: Config, num_gpus: int, kind: Kind) -> int:
    """What is configured, else what the engines leave: all GPUs, or half if replicas are open too."""
    trainer, generator = config.trainer, config.generator
    if trainer.num_ranks is not None:
        return trainer.num_ranks
    left = num_gpus
    if kind == "split":
        parallel = generator.tensor_parallel_size
        left -= parallel * (generator.num_replicas or max(1, num_gpus // 2 // parallel))
    whole = left // trainer.sequence_parallel * trainer.sequence_parallel
    return max(whole, trainer.sequence_parallel)


def _each_gpu(nodes: Sequence[Node]) -> Iterator[tuple[int, int]]:
    for number, node in enumerate(nodes):
        for gpu in range(node.num_gpus):
            yield number, gpu


def _engines(config: Config, nodes: Sequence[Node], taken: Sequence[int]) -> tuple[Slot, ...]:
    """Slots for the replicas; the first `taken` GPUs of each node belong to ranks alone."""
    generator, parallel = config.generator, config.generator.tensor_parallel_size
    largest = max(node.num_gpus for node in nodes)
    if parallel > largest:
        raise ResourceError(
            f"generator.tensor_parallel_size={parallel}: a replica must lie in one node, and the largest has "
            f"{largest} GPUs ({_by_node(nodes, [node.num_gpus for node in nodes])}); lower it"
        )
    slots = [
        Slot(number, tuple(range(first, first + parallel)), generator.cpus)
        for number, node in enumerate(nodes)
        for first in range(taken[number], node.num_gpus - parallel + 1, parallel)
    ]
    wanted = generator.num_replicas or max(1, len(slots))
    if wanted > len(slots):
        num_taken = sum(taken)
        free = sum(node.num_gpus for node in nodes) - num_taken
        beside = f" beside {num_taken} of ranks" if num_taken else ""
        raise ResourceError(
            f"{wanted} replicas of generator.tensor_parallel_size={parallel} need {wanted * parallel} GPUs"
            f"{beside}, whole ones in one node each; {free} are free, room for {len(slots)} "
            f"({_by_node(nodes, [node.num_gpus for node in nodes])}). Lower "
            "generator.num_replicas or trainer.num_ranks, or let them take turns on the same GPUs: "
            "placement=colocated with asynchronous.mode=sync"
        )
    return tuple(slots[:wanted])


def _by_node(nodes: Sequence[Node], counts: Sequence[float]) -> str:
    """What each node has, such as "10.0.0.1: 8, 10.0.0.2: 0"."""
    named = [f"{node.name}: {count:g}" for node, count in zip(nodes, counts, strict=True)][:MAX_NAMED]
    if rest := counts[MAX_NAMED:]:
        named.append(f"{len(rest)} more nodes: {sum(rest):g}")
    return ", ".join(named)


def _gpus_of(slots: Sequence[Slot]) -> set[tuple[int, int]]:
    return {(slot.node, gpu) for slot in slots for gpu in slot.gpus}
