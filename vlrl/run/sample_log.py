"""RUN/samples.jsonl: which samples each step trained, in order; none is skipped or trained twice."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from vlrl.rollout.buffer import Ticket
from vlrl.rollout.outcome import TicketOutcome
from vlrl.tracking.sinks import drop_from_step

SAMPLES_FILE = "samples.jsonl"
"""One JSON object a line: `step`; of what it trained, in order, the `positions` in the run's sequence
of samples, the `sample_ids` (null where no episode was left) and the `oldest_versions` of their tokens."""


class SampleLog:
    """Written before a step is trained; a run that resumes first drops the lines of the steps to come."""

    def __init__(self, run_dir: Path, *, first_step: int) -> None:
        path = run_dir / SAMPLES_FILE
        drop_from_step(path, first_step)
        self._file = path.open("a", encoding="utf-8", buffering=1)

    def log(self, step: int, tickets: Sequence[Ticket[TicketOutcome]]) -> None:
        """Note a batch."""
        line = {
            "step": step,
            "positions": [ticket.position for ticket in tickets],
            "sample_ids": [ticket.payload.sample_id if ticket.payload else None for ticket in tickets],
            "oldest_versions": [ticket.oldest_version for ticket in tickets],
        }
        self._file.write(json.dumps(line) + "\n")

    def close(self) -> None:
        """Flush; safe to call twice."""
        self._file.close()
