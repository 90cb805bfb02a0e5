"""What a run's nodes must have before a model is loaded: its folder, and a way to each other."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from vlrl.cluster.calls import begin, fetch_all, stop
from vlrl.errors import ConfigError, ResourceError
from vlrl.machine.nvidia import gpu_uuids

CONNECT_S = 10.0
"""Seconds in which a node must answer another: a firewall that drops packets does not refuse them."""
ANSWER_S = 180.0
"""Seconds in which a node's side of the checks must have started, and those in which it must answer."""
NUM_THREADS = 64
"""Connections that a node tries at once."""
CONFIG_FILE = "config.json"
UUID = ("GPU-", "MIG-")
"""How CUDA's names of GPUs begin that are not numbers."""


class NodeCheck:
    """A node's side of the checks: a port that the others connect to; the kernel answers on it."""

    def __init__(self) -> None:
        self._door = socket.create_server(("", 0), backlog=1024)

    def port(self) -> int:
        """The port's number."""
        return int(self._door.getsockname()[1])

    def host_without(self, model_path: str) -> str | None:
        """This host's name if there is no model in a folder here."""
        return None if os.path.isfile(os.path.join(model_path, CONFIG_FILE)) else socket.gethostname()

    def gpu_uuids(self) -> dict[str, str]:
        """UUIDs of this machine's GPUs by number."""
        return gpu_uuids()

    def unreached(self, others: Sequence[tuple[str, int]]) -> list[str]:
        """What keeps this node from some of the others, in words."""
        with ThreadPoolExecutor(NUM_THREADS) as threads:
            return [reason for reason in threads.map(unanswered, others) if reason]


def unanswered(peer: tuple[str, int], timeout_s: float = CONNECT_S) -> str | None:
    """Why an (address, port) cannot be connected to; None if it can."""
    try:
        socket.create_connection(peer, timeout=timeout_s).close()
    except TimeoutError:
        return f"{peer[0]} (no answer from port {peer[1]} within {timeout_s:g} s)"
    except OSError as error:
        return f"{peer[0]} (port {peer[1]}: {error.strerror or error})"
    return None


def check_nodes(
    addresses: Mapping[str, str], model_path: str, gpus: Mapping[str, Sequence[str]] | None = None
) -> None:
    """Raise if a run on several nodes would fail on one of them, or between two, once models are loaded.

    Args:
        addresses: of the run's nodes, by Ray's id; with less than two nothing is checked.
        model_path: model.path; looked for on each node if it is a folder on the driver's.
        gpus: what CUDA calls those of each node, if there are any.

    Raises:
        ConfigError: if a node has no model there.
        ResourceError: if a node cannot connect to another, or two have counted the same GPU.
        EngineError: if a node does not answer.
    """
    if len(addresses) < 2:
        return
    remote = ray.remote(num_cpus=0, max_restarts=0)(NodeCheck)
    checks = [
        remote.options(scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=False)).remote()
        for node in addresses
    ]
    names = list(addresses.values())
    try:
        if gpus:
            uuids = dict(zip(addresses, _answers(names, begin(checks, "gpu_uuids")), strict=True))
            _require_own_gpus(addresses, gpus, uuids)
        ports = _answers(names, begin(checks, "port"))
        if os.path.isfile(os.path.join(model_path, CONFIG_FILE)):
            hosts = _answers(names, begin(checks, "host_without", [model_path] * len(names)))
            _require_model(dict(zip(names, hosts, strict=True)), model_path)
        peers = list(zip(names, ports, strict=True))
        others = [[peer for peer in peers if peer[0] != name] for name in names]
        unreached = _answers(names, begin(checks, "unreached", others))
        _require_reached(dict(zip(names, unreached, strict=True)))
    finally:
        stop(checks)


def _answers(names: Sequence[str], refs: Sequence[Any]) -> list[Any]:
    nodes = ", ".join(names)
    late = f"a check of the nodes {nodes} got no answer from one after {ANSWER_S:g} s; see its Ray logs"
    return fetch_all(refs, timeout_s=ANSWER_S, late=late)


def _require_own_gpus(
    addresses: Mapping[str, str], gpus: Mapping[str, Sequence[str]], uuids: Mapping[str, Mapping[str, str]]
) -> None:
    """Raise if a GPU is one of two nodes', as where two of Ray's run on one machine."""
    owner_of: dict[str, str] = {}
    for node, devices in gpus.items():
        for device in devices:
            uuid = uuids[node].get(device, device)
            if not uuid.startswith(UUID):
                continue  # a number alone is another GPU on another machine
            owner = owner_of.setdefault(uuid, node)
            if owner != node:
                # two on one machine have one address
                both = " and ".join(f"{addresses[each]} (ID {each[:8]})" for each in (owner, node))
                raise ResourceError(
                    f"{uuid} is counted by two Ray nodes, {both}, so two ranks or engines would share "
                    "it. Start one Ray node a machine, or give each GPUs of its own: set "
                    "CUDA_VISIBLE_DEVICES before `ray start`"
                )


def _require_model(host_without: Mapping[str, str | None], model_path: str) -> None:
    lacking = [f"{name} (host {host})" for name, host in host_without.items() if host]
    if lacking:
        raise ConfigError(
            f"model.path={model_path}: there is no such model on node {', '.join(lacking)}; put it on a "
            "file system that all nodes mount, copy it to the same path on each, or give the URL of a bucket"
        )


def _require_reached(unreached: Mapping[str, Sequence[str]]) -> None:
    if not (cut := {name: reasons for name, reasons in unreached.items() if reasons}):
        return
    shown = "; ".join(f"node {name} cannot connect to {', '.join(reasons)}" for name, reasons in cut.items())
    raise ResourceError(
        f"{shown}. Ranks and engines meet on ports that are free, so every TCP port must be open between the "
        "nodes: look for a firewall, or for an address of another network (`ray start --node-ip-address`)"
    )
