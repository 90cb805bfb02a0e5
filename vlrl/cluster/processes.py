"""The processes that a run has started in Ray, as whoever watches them finds them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from vlrl.config import Config
from vlrl.process.output_files import output_files, read_on
from vlrl.process.watched import ProcessFacts, serve_metrics

ANSWER_S = 10.0
"""Seconds in which another node reports a process' stacks."""
EVERYWHERE = ("0.0.0.0", "::")


@dataclass(frozen=True, slots=True)
class Process:
    """A process of a run.

    Attributes:
        role: rank, engine or worker.
        number: among those.
        node_id: Ray's.
        facts: how it is watched.
    """

    role: str
    number: int
    node_id: str
    facts: ProcessFacts

    def __str__(self) -> str:
        return f"{self.role} {self.number}"

    def stacks(self) -> str:
        """What it is doing, and its stacks, in words; asked on its node."""
        found = _ask_node(self.node_id, ProcessFacts.stacks, self.facts)
        return str(found) if found is not None else f"its node does not answer within {ANSWER_S:g} s"


def _ask_node(node_id: str, work: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function on a node; None if that does not answer in time, or is gone."""
    if node_id == ray.get_runtime_context().get_node_id():
        return work(*arguments)
    strategy = NodeAffinitySchedulingStrategy(node_id, soft=False)
    asked = ray.remote(num_cpus=0)(work).options(scheduling_strategy=strategy).remote(*arguments)
    ready, _ = ray.wait([asked], timeout=ANSWER_S)
    try:
        return ray.get(ready[0]) if ready else None
    except ray.exceptions.RayError:
        return None


class Output:
    """Follows what processes write to their standard output and error, also after they have died."""

    def __init__(self) -> None:
        self._read: dict[str, dict[str, int]] = {}
        self._names: dict[str, str] = {}

    def follow(self, processes: Sequence[Process]) -> None:
        """Follow these too, from the beginning of what they have written."""
        for process in processes:
            for file in process.facts.output:
                if file not in self._names:
                    self._names[file] = str(process)
                    self._read.setdefault(process.node_id, {})[file] = 0

    def lines(self, *, here_only: bool = False) -> list[tuple[str, str, Sequence[str]]]:
        """What has been written since: (process, node, lines)."""
        here, found = ray.get_runtime_context().get_node_id(), []
        for node_id, read in self._read.items():
            if here_only and node_id != here:
                continue
            news: Mapping[str, tuple[int, Sequence[str]]] = _ask_node(node_id, read_on, read) or {}
            for file, (size, lines) in news.items():
                read[file] = size
                found.append((self._names[file], _name(node_id), lines))
        return found


def _name(node_id: str) -> str:
    return next((str(n["NodeManagerHostname"]) for n in ray.nodes() if n["NodeID"] == node_id), node_id)


class Processes:
    """Ranks, engines and rollout workers as they are now: one that is replaced makes way for the next."""

    def __init__(self, metrics_host: str | None) -> None:
        """Know of none yet.

        Args:
            metrics_host: the address at which each serves its metrics, on a port of its own; None: none does.
        """
        self._host, self._lock = metrics_host, threading.Lock()
        self._asked: dict[tuple[str, int], tuple[str, Any]] = {}
        self._facts: dict[tuple[str, int], tuple[Any, ProcessFacts]] = {}

    @classmethod
    def of_run(cls, config: Config) -> Processes:
        """Those of a run."""
        logging = config.logging
        return cls(None if logging.prometheus_port is None else logging.prometheus_host)

    def add(self, role: str, number: int, node_id: str, actor: Any) -> None:
        """Take up an actor that has just been started: what it is asked here is its first call."""
        asked = actor.__ray_call__.remote(_be_watched, self._host)
        with self._lock:
            self._asked[role, number] = node_id, asked

    def now(self) -> list[Process]:
        """Those that have started, by role and number."""
        with self._lock:
            asked = dict(self._asked)
        found = []
        for (role, number), (node_id, ref) in sorted(asked.items()):
            if (facts := self._facts_of(role, number, ref)) is not None:
                found.append(Process(role, number, node_id, facts))
        return found

    def starting(self) -> list[str]:
        """Names of those that have not started yet, or died before they had."""
        with self._lock:
            asked = dict(self._asked)
        return [f"{r} {n}" for (r, n), (_, ref) in sorted(asked.items()) if self._facts_of(r, n, ref) is None]

    def _facts_of(self, role: str, number: int, ref: Any) -> ProcessFacts | None:
        known = self._facts.get((role, number))
        if known is not None and known[0] == ref:
            return known[1]
        try:
            ready, _ = ray.wait([ref], timeout=0)
            if not ready:
                return None
            facts: ProcessFacts = ray.get(ready[0])
        except ray.exceptions.RayError:  # it died before it answered
            return None
        self._facts[role, number] = ref, facts
        return facts


def reachable(host: str) -> str:
    """Where others reach what this process serves at `host`: there, or at its node's address."""
    return str(ray.util.get_node_ip_address()) if host in EVERYWHERE else host


def _be_watched(actor: Any, host: str | None) -> ProcessFacts:
    """Called in an actor's process, before anything else that is asked of it."""
    facts = replace(ProcessFacts.own(), output=output_files())
    return facts if host is None else replace(facts, target=f"{reachable(host)}:{serve_metrics(host)}")
