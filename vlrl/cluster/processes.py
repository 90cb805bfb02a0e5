"""The processes that a run has started in Ray, as whoever watches them finds them."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

import ray

from vlrl.config import Config
from vlrl.process.watched import ProcessFacts, offer_stacks, serve_metrics, stacks_of

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
        if self.node_id == ray.get_runtime_context().get_node_id():
            return stacks_of(self.facts)
        strategy = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(self.node_id, soft=False)
        asked = ray.remote(num_cpus=0)(stacks_of).options(scheduling_strategy=strategy).remote(self.facts)
        ready, _ = ray.wait([asked], timeout=ANSWER_S)
        if not ready:
            return f"its node does not answer within {ANSWER_S:g} s"
        return str(ray.get(ready[0]))


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
    facts = offer_stacks()
    if host is None:
        return facts
    return ProcessFacts(facts.pid, facts.stacks_file, f"{reachable(host)}:{serve_metrics(host)}")
