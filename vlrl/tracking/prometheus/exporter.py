"""The driver's metrics as Prometheus reads them: the newest numbers of the run whenever it asks.

vlrl_<metric>                          a step's number, / and . as _
vlrl_node_<gauge>{node, gpu}           of a machine, as `vlrl.tracking.metrics.NODE_GAUGES` has them
vlrl_failures_total{kind}              sums of failures/<kind>
vlrl_events_total{event}               lines of RUN/events.jsonl of this attempt
vlrl_step, vlrl_num_steps              steps that are done, and to do
vlrl_last_step_timestamp_seconds       when the last one ended; until then when the run began
vlrl_start_timestamp_seconds           when the run began, or was restarted
vlrl_phase{phase}                      1 for what is being done
"""

from __future__ import annotations

import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from vlrl.config import Config
from vlrl.errors import ResourceError
from vlrl.tracking.metrics import ENGINE_COUNTS, EPISODE_COUNTS, NODES, WORKER_COUNTS, describe
from vlrl.tracking.nodes import Gauges
from vlrl.tracking.prometheus.server import MetricsServer
from vlrl.tracking.sinks.rollout_rows import RolloutRow
from vlrl.tracking.sinks.sink import require_package

FAILURES = "failures/"
COUNTS = ("reward", *EPISODE_COUNTS, *ENGINE_COUNTS, *WORKER_COUNTS)


class RunExporter:
    """A sink that keeps the newest numbers, and the server that Prometheus asks for them.

    Attributes:
        port: at which it is served.
    """

    name = "Prometheus"

    def __init__(
        self,
        config: Config,
        counts: Mapping[str, int],
        phase: Callable[[], str],
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Start the server.

        Args:
            config: of the run; `logging.prometheus_port` is not null.
            counts: of events, as they are when Prometheus asks.
            phase: what is being done.
            clock: seconds since the epoch; for tests.

        Raises:
            ConfigError: if prometheus-client is not installed.
            ResourceError: if the port is in use.
        """
        host, port = config.logging.prometheus_host, config.logging.prometheus_port
        client = require_package(
            "prometheus_client", option=f"logging.prometheus_port={port}", extra="prometheus"
        )
        self._config, self._counts, self._phase, self._clock = config, counts, phase, clock
        self.nodes: Callable[[], Mapping[str, Gauges]] = dict
        self._lock = threading.Lock()
        self._numbers: dict[str, float] = {}
        # From 0 on: Prometheus sees no increase in a number that was never there before.
        self._failures = Counter(dict.fromkeys(COUNTS, 0))
        self._step, self._begin = 0, clock()
        self._last_step_at = self._begin
        registry = client.CollectorRegistry()
        registry.register(self)
        client.ProcessCollector(registry=registry)
        try:
            self._server = MetricsServer(registry, host, port or 0)
        except OSError as error:
            raise ResourceError(
                f"logging.prometheus_port={port} at {host} cannot be served ({error}): give another port, "
                "or 0 for any free one"
            ) from error
        self.port = self._server.port

    def open(self) -> None:
        """Nothing: it serves since it was made."""

    def log(self, step: int, numbers: Mapping[str, float]) -> None:
        """Keep a step's numbers."""
        with self._lock:
            if step >= self._step:
                self._step, self._last_step_at = step + 1, self._clock()
            for name, value in numbers.items():
                if name.startswith(FAILURES):
                    self._failures[name.removeprefix(FAILURES)] += int(value)
                elif not name.startswith(NODES):
                    self._numbers[name] = value

    def log_rollouts(self, step: int, rows: Sequence[RolloutRow]) -> None:
        """Nothing: Prometheus has numbers only."""

    def close(self) -> None:
        """Nothing: what comes after the last step is served until `stop`."""

    def stop(self) -> None:
        """End the server."""
        self._server.stop()

    def collect(self) -> Iterator[Any]:
        """What Prometheus is told, by prometheus-client's protocol."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        with self._lock:
            numbers, failures = dict(self._numbers), Counter(self._failures)
            step, last_step_at = self._step, self._last_step_at
        yield GaugeMetricFamily("vlrl_step", "Steps that are done", step)
        yield GaugeMetricFamily(
            "vlrl_start_timestamp_seconds", "When the run, or its restart, began", self._begin
        )
        yield GaugeMetricFamily("vlrl_num_steps", "Steps to do in all", self._config.num_steps)
        yield GaugeMetricFamily(
            "vlrl_last_step_timestamp_seconds",
            "When the last step ended, or else the run began",
            last_step_at,
        )
        yield _labelled(GaugeMetricFamily, "vlrl_phase", "What is being done", "phase", {self._phase(): 1})
        yield _labelled(
            CounterMetricFamily, "vlrl_failures", "What failed in steps, by kind", "kind", failures
        )
        events = dict(self._counts)
        yield _labelled(CounterMetricFamily, "vlrl_events", "Events, as in events.jsonl", "event", events)
        for name, value in {metric_name(name): (name, v) for name, v in numbers.items()}.items():
            yield GaugeMetricFamily(name, describe(value[0]) or value[0], value[1])
        yield from _node_families(self.nodes())


def metric_name(name: str) -> str:
    """What Prometheus calls a metric of a step."""
    return "vlrl_" + re.sub(r"\W", "_", name, flags=re.ASCII)


def _labelled(family: Any, name: str, words: str, label: str, values: Mapping[str, float]) -> Any:
    found = family(name, words, labels=[label])
    for of, value in sorted(values.items()):
        found.add_metric([of], value)
    return found


def _node_families(nodes: Mapping[str, Gauges]) -> Iterator[Any]:
    from prometheus_client.core import GaugeMetricFamily

    families: dict[str, Any] = {}
    for node, gauges in nodes.items():
        for gauge, value in gauges.items():
            gpu = re.match(r"gpu(\d+)_", gauge)
            name = f"vlrl_node_{re.sub('^gpu[0-9]+_', 'gpu_', gauge)}"
            labels = ["node", "gpu"] if gpu else ["node"]
            words = describe(f"{NODES}{node}/{gauge}").partition(": ")[2]
            family = families.setdefault(name, GaugeMetricFamily(name, words, labels=labels))
            family.add_metric([node, gpu[1]] if gpu else [node], value)
    yield from families.values()
