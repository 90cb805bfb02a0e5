"""RUN/heldout.jsonl: what every held-out row earned at every evaluation, so that two runs can be compared."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from vlrl.tracking.sinks import drop_from_step

HELDOUT_FILE = "heldout.jsonl"
"""One JSON object an answer: `step` (weight updates before it), `how` ("greedy" or "sampled"), `sample_id`,
`accuracy` (the first reward's value) and `reward` (the total), null where it could not be scored; and, which
old files lack, `set`, `row` (its number in the set), `index` (which of the row's n), `vote` and `parts`."""


def start_heldout(run_dir: Path, first_step: int) -> None:
    """Forget the evaluations that a run does again: of later steps, and all if it begins at step 0."""
    drop_from_step(run_dir / HELDOUT_FILE, first_step + 1 if first_step else 0)


def add_heldout(run_dir: Path, step: int, answers: Iterable[Mapping[str, Any]]) -> None:
    """Add the answers of an evaluation after so many weight updates; HELDOUT_FILE says what each one has."""
    with (run_dir / HELDOUT_FILE).open("a", encoding="utf-8") as file:
        for answer in answers:
            file.write(json.dumps({"step": step, **answer}) + "\n")


def read_heldout(run_dir: Path) -> list[dict[str, Any]]:
    """All answers, in the order in which they were written; a line cut short by a kill is left out."""
    path = run_dir / HELDOUT_FILE
    found = []
    for line in path.read_text(encoding="utf-8").splitlines() if path.is_file() else []:
        try:
            found.append(json.loads(line))
        except ValueError:
            continue
    return found
