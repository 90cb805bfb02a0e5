"""The thread that reads the health of the run's nodes from time to time."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from pathlib import Path

from vlrl.cluster.health import NodeHealth
from vlrl.tracking.events import Events
from vlrl.tracking.nodes import Gauges, NodeWatch

EVERY_S = 30.0
"""Seconds between readings: there are some ten numbers a node, which every sink keeps."""
CLOSE_S = 10.0
"""Seconds in which a reading ends; one that hangs in a dead file system is left behind."""


class NodeMonitor:
    """Reads the nodes, reports what is wrong with them, and keeps the newest values for the metrics."""

    def __init__(
        self, node_ids: Iterable[str], run_dir: Path, events: Events, *, every_s: float = EVERY_S
    ) -> None:
        """Start the thread.

        Args:
            node_ids: Ray's, of the run's nodes.
            run_dir: the run's folder.
            events: where problems are reported.
            every_s: seconds between readings.
        """
        self._node_ids, self._run_dir = list(node_ids), run_dir
        self._events, self._every_s = events, every_s
        self._watch = NodeWatch()
        self._lock, self._closed = threading.Lock(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="node monitor", daemon=True)
        self._thread.start()

    def take_metrics(self) -> dict[str, float]:
        """The newest values of all nodes since this was called last; empty between two readings."""
        with self._lock:
            return self._watch.take_metrics()

    def newest(self) -> Mapping[str, Gauges]:
        """The newest readings by host."""
        return self._watch.newest

    def close(self) -> None:
        """End the thread."""
        self._closed.set()
        self._thread.join(CLOSE_S)

    def _run(self) -> None:
        health = NodeHealth(self._node_ids, self._run_dir)
        while not self._closed.is_set():
            try:
                readings = health.read()
            except Exception as error:  # of any kind, once: a run goes on whose nodes cannot be read
                if not self._closed.is_set():
                    self._events.tell("nodes_unread", f"the nodes' health is not read any more: {error}")
                break
            with self._lock:
                events = self._watch.note(readings)
            for event, text in events:
                self._events.tell(event, text)
            self._closed.wait(self._every_s)
        health.close()
