"""What `vlrl eval --out` keeps: every answer, a table with a line a sample, and the summary."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vlrl.evaluate import Evaluation
from vlrl.protocols import Processor
from vlrl.tracking.rollouts.records import images_of, rollout_records, write_rollouts

COLUMNS = ("completion", "reward", "outcome")


def write_evaluation(
    folder: Path, result: Evaluation, processor: Processor, summary: Mapping[str, Any]
) -> Path:
    """Write samples.jsonl, media/, table.csv and summary.json into a folder; return the path of the first.

    Args:
        folder: made if it is not there; files of an earlier evaluation are replaced.
        result: of `vlrl.evaluate.evaluate`.
        processor: spells the tokens.
        summary: as `vlrl eval --json` prints it.
    """
    path = folder / "samples.jsonl"
    by_phase = {
        phase: rollout_records(groups, processor, phase=phase, step=0)
        for phase, groups in (("greedy", result.greedy), ("sampled", result.sampled))
    }
    records = [record for found in by_phase.values() for record in found]
    write_rollouts(path, records, images_of([*result.greedy, *result.sampled]))
    with (folder / "table.csv").open("w", encoding="utf-8", errors="backslashreplace", newline="") as file:
        table = csv.writer(file)
        table.writerow(["id", "answer", *(f"{phase}_{name}" for phase in by_phase for name in COLUMNS)])
        for greedy, sampled in zip(*by_phase.values(), strict=True):
            values = (record[name] for record in (greedy, sampled) for name in COLUMNS)
            table.writerow([greedy["sample_id"], json.dumps(greedy["answer"], ensure_ascii=False), *values])
    (folder / "summary.json").write_text(json.dumps(summary, indent=1) + "\n", encoding="utf-8")
    return path
