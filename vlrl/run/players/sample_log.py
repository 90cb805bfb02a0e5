"""RUN/samples.jsonl: which samples each step trained, in order; none is skipped, or twice a step's own."""

from __future__ import annotations

import json
from pathlib import Path

from vlrl.rollout.collector import CollectedBatch
from vlrl.tracking.sinks import drop_from_step

SAMPLES_FILE = "samples.jsonl"
"""One JSON object a line: `step`; of what it trained, in order, the `positions` in the run's sequence
of samples, the `sample_ids` (null where no episode was left) and the `oldest_versions` of their tokens; with
batch.replay also `replayed_sample_ids` and `replayed_oldest_versions` of those in the places of some."""


class SampleLog:
    """Written before a step is trained; a run that resumes first drops the lines of the steps to come."""

    def __init__(self, run_dir: Path, *, first_step: int) -> None:
        path = run_dir / SAMPLES_FILE
        drop_from_step(path, first_step)
        self._file = path.open("a", encoding="utf-8", buffering=1)

    def log(self, step: int, batch: CollectedBatch) -> None:
        """Note a batch."""
        tickets = batch.tickets
        own = {id(ticket.payload) for ticket in tickets}
        again = [outcome for outcome in batch.trained if id(outcome) not in own]
        line = {
            "step": step,
            "positions": [ticket.position for ticket in tickets],
            "sample_ids": [ticket.payload.sample_id if ticket.payload else None for ticket in tickets],
            "oldest_versions": [ticket.oldest_version for ticket in tickets],
        }
        if again:
            line["replayed_sample_ids"] = [outcome.sample_id for outcome in again]
            line["replayed_oldest_versions"] = [outcome.oldest_version for outcome in again]
        self._file.write(json.dumps(line) + "\n")

    def close(self) -> None:
        """Flush; safe to call twice."""
        self._file.close()
