"""What watches a run from its driver: Prometheus' endpoint, the list of all processes', and for silence."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from vlrl.cluster import Output, Process, Processes, reachable
from vlrl.config import Config
from vlrl.foreign.worker_process import waited_for
from vlrl.run.engines import Engines
from vlrl.run.monitoring.silence import SilenceWatch
from vlrl.run.monitoring.waits import Waits
from vlrl.tracking.console import TrainConsole
from vlrl.tracking.events import Events
from vlrl.tracking.prometheus.exporter import RunExporter
from vlrl.tracking.prometheus.targets import TargetsFile
from vlrl.tracking.run_log import RunLog
from vlrl.tracking.sinks import MetricSinks

EVERY_S = 2.0
"""Seconds between looks at the processes."""
LEVELS = {"ERROR": "error", "Traceback": "error", "Error": "error", "WARN": "warning", "Warn": "warning"}
"""By a word at the beginning of what a process has printed."""
MAX_FOREIGN = 8
"""Processes of environments and rewards that are asked for their stacks, the longest waited for."""
CLOSE_S = 15.0
"""Seconds in which a look ends; one that asks a node that is gone is left behind."""


class Monitor:
    """Watches a run from its start to its end, in a thread.

    Consumes: nothing. Waits for: the time of its next look. Unblocked by: its end.

    Attributes:
        sinks: take the numbers of the steps, until its end.
    """

    def __init__(
        self, config: Config, events: Events, console: TrainConsole, *, resume_step: int | None
    ) -> None:
        """Open the sinks, and serve the driver's metrics if logging.prometheus_port asks for them.

        Args:
            config: of the run.
            events: where problems are reported.
            console: knows what is being done.
            resume_step: first step that will be logged; None starts the files again.

        Raises:
            ConfigError: if the package of a sink is not installed.
            ResourceError: if the port is in use.
        """
        self._config, self._events, self._console = config, events, console
        self._exporter: RunExporter | None = None
        with ExitStack() as stack:
            if config.logging.prometheus_port is not None:
                self._exporter = RunExporter(config, events.counts, lambda: console.running)
                stack.callback(self._exporter.stop)
            more = (self._exporter,) if self._exporter is not None else ()
            options = config.logging
            self.sinks = MetricSinks(
                config.run_dir, options, resume_step=resume_step, tell=events.tell, more=more
            )
            stack.callback(self.sinks.close)
            self._log = RunLog(config.run_dir, socket.gethostname())
            stack.callback(self._log.close)
            console.hear = self._hear
            self._stack = stack.pop_all()
        shared = config.logging.prometheus_targets
        self._targets = TargetsFile(config.run_dir, Path(shared) if shared is not None else None)

    @contextmanager
    def watching(self, engines: Engines, loop: asyncio.AbstractEventLoop) -> Iterator[None]:
        """Watch the calling thread, an event loop's tasks, and what is started in Ray, within the block."""
        if self._exporter is not None:
            self._exporter.nodes = engines.nodes.newest
        closed, silence = threading.Event(), self._silence_watch(engines, loop)
        thread = threading.Thread(
            target=self._run, args=(engines.processes, silence, closed), name="monitor", daemon=True
        )
        thread.start()
        try:
            yield
        finally:
            closed.set()
            thread.join(CLOSE_S)
            self._targets.remove()

    def close(self) -> None:
        """Close the sinks, the log and the endpoint."""
        self._stack.close()

    def _silence_watch(self, engines: Engines, loop: asyncio.AbstractEventLoop) -> SilenceWatch | None:
        silence_s = self._config.logging.silence_s
        if silence_s is None:
            return None
        return SilenceWatch(
            silence_s,
            self._config.run_dir,
            Waits(threading.get_ident(), loop),
            lambda: [*engines.processes.now(), *waited_for()[:MAX_FOREIGN]],
            engines.processes.starting,
            lambda: (self._console.running, self._console.num_done),
            self._events.tell,
        )

    def _run(self, processes: Processes, silence: SilenceWatch | None, closed: threading.Event) -> None:
        output = Output()
        while not closed.wait(EVERY_S):
            try:
                self._follow(output, processes.now())
                if self._exporter is not None:
                    self._write_targets(self._exporter.port, processes.now())
                if silence is not None:
                    silence.look()
            except Exception as error:  # of any kind, once: a run goes on that nobody watches
                if not closed.is_set():
                    self._events.tell("unwatched", f"the run's processes are not watched any more: {error}")
                return

        with suppress(Exception):  # of those that have died since, the last words
            self._follow(output, processes.now(), here_only=True)

    def _follow(self, output: Output, processes: Sequence[Process], *, here_only: bool = False) -> None:
        output.follow(processes)
        for process, node, lines in output.lines(here_only=here_only):
            for line in lines:
                level = next((name for mark, name in LEVELS.items() if mark in line[:200]), "info")
                self._log.write(line, process=process, node=node, step=self._step, level=level)

    def _hear(self, text: str) -> None:
        event = self._events.being_told.get(text, "")
        self._log.write(text, step=self._step, level="warning" if event else "info", event=event)

    @property
    def _step(self) -> int | None:
        """The step that is being made."""
        return self._console.num_done if self._console.running else None

    def _write_targets(self, port: int, processes: Iterable[Process]) -> None:
        own = f"{reachable(self._config.logging.prometheus_host)}:{port}"
        found = [(process.facts.target, process.role, process.number) for process in processes]
        self._targets.write([(own, "driver", 0), *found])
