"""What `vlrl eval --out` keeps: every answer, a table with a line a sample, and the summary."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from vlrl.evaluation.kept import SAMPLES_FILE
from vlrl.tracking.rollouts.read import read_rollouts

COLUMNS = ("completion", "reward", "outcome")


def write_evaluation(folder: Path, summary: Mapping[str, Any]) -> None:
    """Write table.csv and summary.json beside the answers that an evaluation kept in a folder.

    Args:
        folder: of `vlrl.evaluate.evaluate_model`.
        summary: as `vlrl eval --json` prints it.
    """
    write_table(folder / "table.csv", read_rollouts(folder / SAMPLES_FILE))
    (folder / "summary.json").write_text(json.dumps(summary, indent=1) + "\n", encoding="utf-8")


def write_table(path: Path, records: Sequence[Mapping[str, Any]]) -> None:
    """Write a line a sample: its set, id and answer, then of each answer the text, reward and outcome."""
    lines: dict[tuple[str, int, str], dict[str, Any]] = {}
    several = any(record["phase"] == "sampled" and record["group_index"] for record in records)
    for record in records:
        said, sample_id = record["heldout"], record["sample_id"]
        answer = json.dumps(record["answer"], ensure_ascii=False)
        named = {"set": said["set"], "id": sample_id, "answer": answer}
        line = lines.setdefault((said["set"], said["row"], sample_id), named)
        numbered = several and record["phase"] == "sampled"
        name = f"sampled_{record['group_index'] + 1}" if numbered else record["phase"]
        line |= {f"{name}_{column}": record[column] for column in COLUMNS}
    columns = dict.fromkeys(column for line in lines.values() for column in line)
    with path.open("w", encoding="utf-8", errors="backslashreplace", newline="") as file:
        table = csv.DictWriter(file, list(columns))
        table.writeheader()
        table.writerows(lines.values())
