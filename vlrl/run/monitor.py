"""What watches a run from its driver: Prometheus' endpoint, and the list of those of all processes."""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Self

from vlrl.cluster import reachable
from vlrl.config import Config
from vlrl.run.engines import Engines
from vlrl.tracking.console import TrainConsole
from vlrl.tracking.events import Events
from vlrl.tracking.prometheus.exporter import RunExporter
from vlrl.tracking.prometheus.targets import TargetsFile
from vlrl.tracking.sinks.sink import Sink

EVERY_S = 2.0
"""Seconds between looks at the processes."""


class Monitor:
    """Watches a run from its start to its end; without logging.prometheus_port it does nothing.

    Attributes:
        sinks: take the numbers of the steps.
    """

    def __init__(self, config: Config, events: Events, console: TrainConsole) -> None:
        """Serve the driver's metrics, if they are asked for.

        Raises:
            ConfigError: if prometheus-client is not installed.
            ResourceError: if the port is in use.
        """
        self._config, self._events = config, events
        self._engines: Engines | None = None
        self._exporter: RunExporter | None = None
        self._closed, self._thread = threading.Event(), threading.Thread(target=self._run, daemon=True)
        if config.logging.prometheus_port is not None:
            self._exporter = RunExporter(config, events.counts, lambda: console.running)
            self._targets = TargetsFile(config.run_dir)
        self.sinks: tuple[Sink, ...] = (self._exporter,) if self._exporter is not None else ()

    def watch(self, engines: Engines) -> None:
        """Watch the processes that are started in Ray, from now on."""
        self._engines = engines
        if self._exporter is not None:
            self._exporter.nodes = engines.nodes.newest
            self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closed.set()
        if self._thread.ident is not None:
            self._thread.join()
        if self._exporter is not None:
            self._targets.remove()
            self._exporter.stop()

    def _run(self) -> None:
        while not self._closed.is_set():
            try:
                self._write_targets()
            except Exception as error:  # of any kind, once: a run goes on that nobody watches
                if not self._closed.is_set():
                    self._events.tell("unwatched", f"the run's processes are not watched any more: {error}")
                return
            self._closed.wait(EVERY_S)

    def _write_targets(self) -> None:
        assert self._engines is not None and self._exporter is not None
        host = self._config.logging.prometheus_host
        own = f"{reachable(host)}:{self._exporter.port}"
        found = [(p.facts.target, p.role, p.number) for p in self._engines.processes.now()]
        self._targets.write([(own, "driver", 0), *found])
