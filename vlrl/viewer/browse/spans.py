"""The timeline of a run's last steps, as JSON for the Gantt chart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from vlrl.tracking.timeline import read_timeline

NUM_STEPS = 10
MAX_SPANS = 6000
LANES = ("trainer", "generator", "request", "episode")


def last_steps(file: Path, num_steps: int = NUM_STEPS) -> dict[str, Any]:
    """The spans of the last steps.

    Args:
        file: RUN/timeline.jsonl; a missing one has no spans.
        num_steps: that are shown.

    Returns:
        `spans`: [lane, what, start, end, words] each, in seconds from the first; `steps`: the numbers of
        those shown; `left_out`: spans beyond MAX_SPANS.
    """
    spans = [span for span in read_timeline(file) if span.details.get("batch") != "evaluate"]
    numbers = sorted({s.details["step"] for s in spans if s.lane == "trainer" and "step" in s.details})
    shown = numbers[-num_steps:]
    if not shown:
        return {"spans": [], "steps": [], "left_out": 0}
    start = min(s.start_s for s in spans if s.lane == "trainer" and s.details.get("step") == shown[0])
    chosen = [s for s in spans if s.end_s > start and s.lane in LANES]
    out = [
        [
            span.lane,
            span.what,
            round(max(0.0, span.start_s - start), 4),
            round(span.end_s - start, 4),
            ", ".join(f"{name} {value}" for name, value in span.details.items())[:120],
        ]
        for span in chosen
    ]
    return {"spans": out[:MAX_SPANS], "steps": shown, "left_out": max(0, len(out) - MAX_SPANS)}
