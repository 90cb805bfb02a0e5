"""OpenTelemetry traces of the timeline's spans: an episode with its requests and env steps."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from vlrl.config import Config
from vlrl.tracking.sinks.sink import require_package

TRACES_FILE = "traces.jsonl"
"""In a run's folder, with logging.traces=file: a span a line, as OpenTelemetry's SDK writes it in JSON."""
CLOSE_S = 5.0
"""Seconds for the last spans; a collector that does not answer is left behind."""


class Traces:
    """Hands spans to OpenTelemetry, whose thread exports them; what that cannot keep up with is lost."""

    def __init__(self, config: Config) -> None:
        """Begin; `logging.traces` says where spans go.

        Raises:
            ConfigError: if OpenTelemetry is not installed.
        """
        option = f"logging.traces={config.logging.traces}"
        sdk = require_package("opentelemetry.sdk.trace", option=option, extra="traces")
        export = require_package("opentelemetry.sdk.trace.export", option=option, extra="traces")
        resource = require_package("opentelemetry.sdk.resources", option=option, extra="traces").Resource
        if config.logging.traces == "otlp":  # to OTEL_EXPORTER_OTLP_ENDPOINT, by OpenTelemetry's rules
            module = "opentelemetry.exporter.otlp.proto.http.trace_exporter"
            exporter = require_package(module, option=option, extra="traces").OTLPSpanExporter()
        else:
            exporter = export.ConsoleSpanExporter(out=_opened(config.run_dir), formatter=_line)
        named = {"service.name": "vlrl", "vlrl.run": config.run.name, "process.pid": os.getpid()}
        self._provider: Any = sdk.TracerProvider(resource=resource.create(named), shutdown_on_exit=False)
        self._provider.add_span_processor(export.BatchSpanProcessor(exporter))
        self._tracer: Any = self._provider.get_tracer("vlrl")
        context = "opentelemetry.trace.propagation.tracecontext"
        self._context: Any = require_package(
            context, option=option, extra="traces"
        ).TraceContextTextMapPropagator()

    @classmethod
    def of_run(cls, config: Config) -> Traces | None:
        """A run's, if logging.traces asks for them."""
        return cls(config) if config.logging.traces is not None else None

    @contextmanager
    def span(self, lane: str, what: str, details: Mapping[str, Any]) -> Iterator[None]:
        """The block as a span; spans within it, of the same task, are its parts."""
        with self._tracer.start_as_current_span(f"{lane} {what}", attributes=_attributes(details)):
            yield

    def add(
        self,
        lane: str,
        what: str,
        start_s: float,
        end_s: float,
        details: Mapping[str, Any],
        parent: str | None = None,
    ) -> None:
        """Note what has ended, by seconds since the epoch; `parent` is of `here`, None the present span."""
        span = self._tracer.start_span(
            f"{lane} {what}",
            attributes=_attributes(details),
            start_time=round(start_s * 1e9),
            context=None if parent is None else self._context.extract({"traceparent": parent}),
        )
        span.end(round(end_s * 1e9))

    def here(self) -> str:
        """The present span's W3C traceparent."""
        carrier = dict[str, str]()
        self._context.inject(carrier)
        return carrier.get("traceparent", "")

    def close(self) -> None:
        """Export what is left; safe to call twice."""
        thread = threading.Thread(target=self._provider.shutdown, name="traces", daemon=True)
        thread.start()
        thread.join(CLOSE_S)


def _opened(run_dir: Path) -> Any:
    """Its file, to which all processes of the run add; a line is written whole."""
    run_dir.mkdir(parents=True, exist_ok=True)
    return (run_dir / TRACES_FILE).open("a", encoding="utf-8", errors="backslashreplace", buffering=1)


def _line(span: Any) -> str:
    return f"{span.to_json(indent=None)}\n"


def _attributes(details: Mapping[str, Any]) -> dict[str, Any]:
    return {f"vlrl.{name}": value for name, value in details.items() if value is not None}
