"""Readings of a run's nodes: from Ray's state, and from a process on each node but the driver's."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]
import ray
from ray._common.utils import get_system_memory
from ray._private.state import available_resources_per_node
from ray._private.utils import get_used_memory
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from vlrl.machine.nvidia import gpu_readings

ANSWER_S = 5.0
"""Seconds in which nodes answer; those that do not are asked again next time."""
STORE = "object_store_memory"


class NodeReader:
    """What can be read on a node alone; the actor of a node, or in the driver for its own."""

    def __init__(self, run_dir: str) -> None:
        self._run_dir = Path(run_dir)
        self._has_gpus = bool(gpu_readings())
        psutil.cpu_percent()  # counts from here
        self._network = time.monotonic(), _network_bytes()

    def read(self) -> dict[str, float]:
        """Gauges by name, as `vlrl.tracking.metrics.NODE_GAUGES` has them."""
        gauges = {
            "cpu_load": psutil.cpu_percent() / 100,
            "memory_used": get_used_memory() / get_system_memory(),
            **self._read_network(),
            "shared_memory_used": _disk("shm", Path("/dev/shm"))["shm_used"],
            **_disk("run_disk", self._run_dir),
            **_disk("tmp_disk", Path(tempfile.gettempdir())),
        }
        for gpu in gpu_readings() if self._has_gpus else ():
            for what in ("memory_used", "utilization"):
                if (value := getattr(gpu, what)) is not None:
                    gauges[f"gpu{gpu.number}_{what}"] = value
        return gauges

    def _read_network(self) -> dict[str, float]:
        (before, counted), self._network = self._network, (time.monotonic(), _network_bytes())
        seconds = max(self._network[0] - before, 1e-3)
        received, sent = (
            max(0, now - then) / 2**20 / seconds for now, then in zip(self._network[1], counted, strict=True)
        )
        return {"network_received_mib_per_s": received, "network_sent_mib_per_s": sent}


def _network_bytes() -> tuple[int, int]:
    """Received and sent by all network cards, without what stays on the node."""
    cards = [c for name, c in psutil.net_io_counters(pernic=True).items() if name != "lo"]
    return sum(card.bytes_recv for card in cards), sum(card.bytes_sent for card in cards)


def _disk(name: str, folder: Path) -> dict[str, float]:
    """How full the disk of a folder is, or that of the first above it that there is."""
    place = next((each for each in (folder, *folder.parents) if each.exists()), Path("/"))
    usage = shutil.disk_usage(place)
    return {f"{name}_used": 1 - usage.free / usage.total, f"{name}_free_gib": usage.free / 2**30}


class NodeHealth:
    """Reads the nodes of a run; called by one thread at a time."""

    def __init__(self, node_ids: Iterable[str], run_dir: Path) -> None:
        """Start a reader on each node.

        Args:
            node_ids: Ray's, of the run's nodes; the driver's own is read in any case.
            run_dir: the run's folder, absolute.
        """
        self._run_dir = str(run_dir)
        self._here = ray.get_runtime_context().get_node_id()
        self._own = NodeReader(self._run_dir)
        found = {node["NodeID"]: node for node in ray.nodes()}
        ids = [node for node in dict.fromkeys((self._here, *node_ids)) if node in found]
        self._id_of = {name: node for node, name in _names([found[node] for node in ids]).items()}
        self._address_of = {name: _address(found[node]) for name, node in self._id_of.items()}
        self._readers: dict[str, Any] = {}
        self._asked: dict[str, Any] = {}

    def read(self) -> dict[str, dict[str, float]]:
        """Gauges by the name of their node; of one that has left only that it is not alive."""
        nodes = {node["NodeID"]: node for node in ray.nodes() if node["Alive"]}
        self._find_again(nodes)
        stores = available_resources_per_node()
        alive = {name: node for name, node in self._id_of.items() if node in nodes}
        readings: dict[str, dict[str, float]] = {name: {"alive": 0.0} for name in self._id_of}
        for name, gauges in self._ask({n: node for n, node in alive.items() if node != self._here}).items():
            readings[name] |= gauges
        for name, node in alive.items():
            readings[name]["alive"] = 1.0
            size, free = nodes[node]["Resources"].get(STORE), stores.get(node, {}).get(STORE)
            if size and free is not None:
                readings[name]["object_store_used"] = 1 - free / size
            if node == self._here:
                readings[name] |= self._own.read()
        return readings

    def close(self) -> None:
        """Stop the readers."""
        for reader in self._readers.values():
            with suppress(ray.exceptions.RayError):
                ray.kill(reader)
        self._readers.clear()

    def _find_again(self, alive: Mapping[str, Mapping[str, Any]]) -> None:
        """A node that has come back has another id."""
        free = {
            _address(node): node_id for node_id, node in alive.items() if node_id not in self._id_of.values()
        }
        for name, node_id in self._id_of.items():
            if node_id not in alive and self._address_of[name] in free:
                self._id_of[name] = free.pop(self._address_of[name])
                self._readers.pop(name, None)
                self._asked.pop(name, None)

    def _ask(self, node_ids: Mapping[str, str]) -> dict[str, dict[str, float]]:
        """What the readers of nodes answer in time, by the nodes' names."""
        for name, node_id in node_ids.items():
            if name not in self._readers:
                at_node = NodeAffinitySchedulingStrategy(node_id, soft=False)
                remote = ray.remote(num_cpus=0, max_restarts=0)(NodeReader)
                self._readers[name] = remote.options(scheduling_strategy=at_node).remote(self._run_dir)
            if name not in self._asked:  # one that was slow may still answer what it was asked
                self._asked[name] = self._readers[name].read.remote()
        found, until = {}, time.monotonic() + ANSWER_S
        for name in node_ids:
            ready, _ = ray.wait([self._asked[name]], timeout=max(0.0, until - time.monotonic()))
            if ready:
                try:
                    found[name] = ray.get(self._asked.pop(name))
                except ray.exceptions.RayError:  # its process is gone: the next one is asked next time
                    self._readers.pop(name)
        return found


def _address(node: Mapping[str, Any]) -> tuple[str, str]:
    return node["NodeManagerHostname"], node["NodeManagerAddress"]


def _names(nodes: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Names of nodes by id: that of the host, and where several are on one, a part of the id with it."""
    nodes = list(nodes)
    count = Counter(node["NodeManagerHostname"] for node in nodes)
    return {
        node["NodeID"]: host if count[host] == 1 else f"{host}-{node['NodeID'][:6]}"
        for node in nodes
        for host in (node["NodeManagerHostname"],)
    }
