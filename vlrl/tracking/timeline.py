"""The timeline of a run: spans of time by lane, from which a chart shows what waited for what.

trainer    │ generate │ train │ sync │ …    parts of a step; `generate` is waiting for the batch
generator  │ paused │                       an engine that takes new weights
request    │ generate │                     an action, from the moment it is asked for
episode    │ play │                         from its first reset to its end
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from vlrl.config import Config
from vlrl.protocols import Policy
from vlrl.tracking.traces import Traces

if TYPE_CHECKING:
    from vlrl.rollout.session import Session
    from vlrl.types import Generation, Sampling

TIMELINE_FILE = "timeline.jsonl"
"""In a run's folder: a flat JSON object a line, lane, what, start_s, end_s and the details."""

RecordFn = Callable[[str, float, float], None]
"""(what, start, end), both by time.perf_counter."""


@dataclass(frozen=True, slots=True)
class Span:
    """An interval of time in a lane.

    Attributes:
        lane: whose time it was.
        what: was done.
        start_s: seconds since the epoch, by a clock that never jumps.
        end_s: the same.
        details: which step, version or episode it was.
    """

    lane: str
    what: str
    start_s: float
    end_s: float
    details: Mapping[str, Any] = field(default_factory=dict)


class Timeline:
    """Writes spans as they end, and hands them to OpenTelemetry; without either it keeps nothing."""

    def __init__(
        self, path: Path | None = None, *, append: bool = False, traces: Traces | None = None
    ) -> None:
        """Begin the file again with the first span, or go on with it as a resumed run does."""
        self._traces = traces
        self._epoch_s = time.time() - time.perf_counter()
        self._path, self._mode = path, "a" if append else "w"
        self._file: IO[str] | None = None

    @classmethod
    def of_run(cls, config: Config, *, resumed: bool) -> Timeline:
        """A run's, if logging.timeline or logging.traces asks for it."""
        path = config.run_dir / TIMELINE_FILE if config.logging.timeline else None
        return cls(path, append=resumed, traces=Traces.of_run(config))

    def begin(self) -> None:
        """Open the file, so that other processes of the run can go on with it."""
        if self._path is not None and self._file is None:  # line-buffered: what a killed run did is there
            self._file = self._path.open(self._mode, encoding="utf-8", buffering=1)

    def watched(self, policy: Policy) -> Policy:
        """The policy, each of whose requests becomes a span."""
        return policy if self._path is None and self._traces is None else _Watched(policy, self)

    def record(self, lane: str, what: str, start: float, end: float, **details: Any) -> None:
        """Note a span from start to end, both by time.perf_counter; details are JSON values."""
        if self._traces is not None:
            self._traces.add(lane, what, self._epoch_s + start, self._epoch_s + end, details)
        self._write(lane, what, start, end, details)

    def _write(self, lane: str, what: str, start: float, end: float, details: Mapping[str, Any]) -> None:
        self.begin()
        if self._file is None or self._file.closed:
            return
        at = {"start_s": round(self._epoch_s + start, 6), "end_s": round(self._epoch_s + end, 6)}
        self._file.write(json.dumps({"lane": lane, "what": what, **at, **details}) + "\n")

    def recorder(self, lane: str, **details: Any) -> RecordFn:
        """`record` of one lane."""
        return lambda what, start, end: self.record(lane, what, start, end, **details)

    def ended(self, lane: str, what: str, seconds: float, **details: Any) -> None:
        """Note what has taken so many seconds and ends now."""
        end = time.perf_counter()
        self.record(lane, what, end - seconds, end, **details)

    @contextmanager
    def span(self, lane: str, what: str, **details: Any) -> Iterator[None]:
        """Note the block, whatever ends it."""
        start = time.perf_counter()
        try:
            with self._traces.span(lane, what, details) if self._traces is not None else nullcontext():
                yield
        finally:
            self._write(lane, what, start, time.perf_counter(), details)

    def around_env(self, method: str) -> AbstractContextManager[None]:
        """A context for a call of an environment: a span of its trace, if there are traces."""
        return self.part("env", method)

    def part(self, lane: str, what: str) -> AbstractContextManager[None]:
        """A context for a part of the present span: a span of its trace, if there are traces."""
        return self._traces.span(lane, what, {}) if self._traces is not None else nullcontext()

    def ended_part(
        self, lane: str, what: str, start: float, end: float, *, trace: str | None = None, **details: Any
    ) -> None:
        """Note a part of the present span, or of `trace`'s (see `here`), by time.perf_counter."""
        if self._traces is not None:
            self._traces.add(lane, what, self._epoch_s + start, self._epoch_s + end, details, trace)

    def here(self) -> str:
        """The present span as others may name it (W3C traceparent); "" without traces."""
        return self._traces.here() if self._traces is not None else ""

    def close(self) -> None:
        """Close the file; what comes later is not kept. Safe to call twice."""
        self._path = None
        if self._file is not None:
            self._file.close()
        if self._traces is not None:
            self._traces.close()


class _Watched:
    """A policy each of whose requests is a span."""

    def __init__(self, policy: Policy, timeline: Timeline) -> None:
        self._policy, self._timeline = policy, timeline

    async def generate(self, session: Session, sampling: Sampling) -> Generation:
        """Generate as the policy itself does."""
        with self._timeline.span(
            "request", "generate", sample=session.sample.id, group_index=session.group_index
        ):
            return await self._policy.generate(session, sampling)


def read_timeline(path: Path) -> list[Span]:
    """The spans of a file, earliest first; a missing one has none, a line cut short by a kill is skipped."""
    spans = []
    for line in path.read_text(encoding="utf-8").splitlines() if path.is_file() else ():
        try:
            span = json.loads(line)
            named = {key: span.pop(key) for key in ("lane", "what", "start_s", "end_s")}
            spans.append(Span(**named, details=span))
        except (ValueError, KeyError):
            continue
    return sorted(spans, key=lambda span: span.start_s)


def overlap_s(spans: list[Span], start_s: float, end_s: float) -> float:
    """Seconds of [start_s, end_s] in which at least one of the spans, earliest first, went on."""
    total, reached = 0.0, start_s
    for span in spans:
        begin, end = max(span.start_s, reached), min(span.end_s, end_s)
        if end > begin:
            total, reached = total + end - begin, end
    return total
