"""What a server of environments counts, as Prometheus reads it.

vlrl_env_sessions, vlrl_env_max_sessions    episodes that are open, and that can be
vlrl_env_call_seconds{method}               a histogram of what environments took: reset, step, …
vlrl_env_failures_total{kind}               of these calls: raised, hung, died
and memory, processor time and open files of the server's process
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from vlrl.environment.host.failure import EnvFailure, FailureKind
from vlrl.environment.serve.sessions import Sessions

TEXT_FORMAT = "text/plain; version=0.0.4; charset=utf-8"
"""The format that every Prometheus reads."""
KINDS: tuple[FailureKind, ...] = ("raised", "hung", "died")
BUCKETS_S = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)


class ServerMetrics:
    """Counts calls of environments from its start; needs prometheus-client."""

    def __init__(self) -> None:
        import prometheus_client as client

        self._registry = client.CollectorRegistry()
        client.ProcessCollector(registry=self._registry)
        self._seconds = client.Histogram(
            "vlrl_env_call_seconds",
            "Seconds that environments took, by method",
            ["method"],
            registry=self._registry,
            buckets=BUCKETS_S,
        )
        self._failures = client.Counter(
            "vlrl_env_failures", "Calls that failed, by kind", ["kind"], registry=self._registry
        )
        self._open, self._most = (
            client.Gauge(f"vlrl_env_{name}", words, registry=self._registry)
            for name, words in (("sessions", "Open episodes"), ("max_sessions", "Most open episodes"))
        )
        for kind in KINDS:  # from 0 on: Prometheus sees no increase in a number that was never there before
            self._failures.labels(kind)

    @classmethod
    def if_installed(cls) -> ServerMetrics | None:
        """A server's; None without prometheus-client, which is an extra."""
        return cls() if find_spec("prometheus_client") is not None else None

    @contextmanager
    def around(self, method: str) -> Iterator[None]:
        """Measure a call of an environment."""
        start = time.perf_counter()
        try:
            yield
        except EnvFailure as failure:
            self._failures.labels(failure.kind).inc()
            raise
        finally:
            self._seconds.labels(method).observe(time.perf_counter() - start)

    def text(self, sessions: Sessions) -> bytes:
        """All numbers, in TEXT_FORMAT."""
        from prometheus_client import generate_latest

        self._open.set(len(sessions))
        self._most.set(sessions.max_sessions)
        return generate_latest(self._registry)
