"""The health of a run's machines: metrics by host, and events when something is wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from vlrl.tracking.metrics import NODES

ALIVE = "alive"
NEARLY_FULL = 0.9
"""Share of memory in use that is reported; Linux kills processes when there is none left."""
FULL_DISK, SMALL_GIB = 0.95, 50.0
"""A disk is nearly full if it is used to this share, and so much or less is free."""
RECOVERED = 0.05
"""A problem is reported again only after it was better by so much."""

Gauges: TypeAlias = Mapping[str, float]
"""Values by name, as `vlrl.tracking.metrics.NODE_GAUGES` has them; of a node that is lost only `alive`."""
NodeEvent: TypeAlias = tuple[str, str]
"""The name of an event, and a sentence."""


class NodeWatch:
    """The newest readings of the nodes, and which problems have been reported.

    Attributes:
        newest: reading of each host.
    """

    def __init__(self) -> None:
        self.newest: dict[str, Gauges] = {}
        self._wrong: set[tuple[str, str]] = set()
        self._latest: dict[str, float] = {}

    def note(self, readings: Mapping[str, Gauges]) -> Sequence[NodeEvent]:
        """Take the readings of hosts by name; returns the events to report, usually none."""
        events: list[NodeEvent] = []
        self.newest = dict(readings)
        for host, gauges in readings.items():
            self._latest |= {f"{NODES}{host}/{name}": value for name, value in gauges.items()}
            events += self._lost_or_back(host, gauges)
            events += self._nearly_full(host, gauges)
        return events

    def take_metrics(self) -> dict[str, float]:
        """The newest values since this was called last, by metric."""
        taken, self._latest = self._latest, {}
        return taken

    def _lost_or_back(self, host: str, gauges: Gauges) -> list[NodeEvent]:
        if not gauges[ALIVE]:
            return self._begins(host, ALIVE, "node_lost", f"node {host} has left the cluster")
        return self._ends(host, ALIVE, "node_back", f"node {host} is back in the cluster")

    def _nearly_full(self, host: str, gauges: Gauges) -> list[NodeEvent]:
        events: list[NodeEvent] = []
        memory = gauges.get("memory_used", 0.0)
        if memory > NEARLY_FULL:
            text = f"node {host}: {memory:.0%} of the memory is in use; Linux kills a process when it is full"
            events += self._begins(host, "memory_used", "node_memory", text)
        elif memory < NEARLY_FULL - RECOVERED:
            self._wrong.discard((host, "memory_used"))
        for name, what in (("run_disk", "the run's folder"), ("tmp_disk", "temporary files")):
            used, free = gauges.get(f"{name}_used", 0.0), gauges.get(f"{name}_free_gib", 0.0)
            if used > FULL_DISK and free < SMALL_GIB:
                text = f"node {host}: the disk of {what} is nearly full, {free:.1f} GiB are free"
                events += self._begins(host, name, "node_disk", text)
            elif used < FULL_DISK - RECOVERED:
                self._wrong.discard((host, name))
        return events

    def _begins(self, host: str, what: str, event: str, text: str) -> list[NodeEvent]:
        if (host, what) in self._wrong:
            return []
        self._wrong.add((host, what))
        return [(event, text)]

    def _ends(self, host: str, what: str, event: str, text: str) -> list[NodeEvent]:
        if (host, what) not in self._wrong:
            return []
        self._wrong.discard((host, what))
        return [(event, text)]
