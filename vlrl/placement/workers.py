"""How many rollout workers there are, and on which nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from vlrl.config import Config
from vlrl.errors import ResourceError
from vlrl.placement.slots import Node, Slot


def worker_slots(
    config: Config, nodes: Sequence[Node], ranks: Sequence[Slot], engines: Sequence[Slot]
) -> tuple[Slot, ...]:
    """Slots for the rollout workers, on the nodes with engines.

    Those that the config asks for, round robin. If it leaves their number open: none where everything is on
    one node without a GPU, else one for two GPUs of engines, as far as there are cores for them.

    Raises:
        ResourceError: if a node has too few cores for those that the config asks for.
    """
    wanted, num_cpus = config.rollout.num_workers, config.rollout.cpus_per_worker
    gpus = Counter(slot.node for slot in engines for _ in slot.gpus or (0,))
    free = [node.num_cpus for node in nodes]
    for slot in (*ranks, *engines):
        free[slot.node] -= slot.num_cpus
    homes = sorted({slot.node for slot in engines or ranks})
    if wanted is None:
        alone = len({slot.node for slot in (*ranks, *engines)}) == 1
        if alone and not any(slot.gpus for slot in engines):
            return ()
        rooms = {node: max(0.0, free[node] / num_cpus) for node in homes}
        counts = {node: int(min(-(-gpus[node] // 2), rooms[node])) for node in homes}
    else:
        counts = Counter(homes[number % len(homes)] for number in range(wanted))
    for node, count in counts.items():
        if count * num_cpus > free[node]:
            raise ResourceError(
                f"rollout.num_workers={wanted}: {count} of them need {count * num_cpus:g} cpus on node "
                f"{nodes[node].name}, where ranks and engines leave {free[node]:g}; lower it, or "
                "rollout.cpus_per_worker"
            )
    return tuple(Slot(node, (), num_cpus) for node in homes for _ in range(counts[node]))
