"""What `vlrl eval --out` keeps: every answer, a table with a line a sample, and the summary."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from vlrl.evaluation.answers import HOWS
from vlrl.evaluation.result import Evaluation
from vlrl.protocols import Processor
from vlrl.tracking.rollouts.records import images_of, rollout_records, write_rollouts
from vlrl.types import Media

COLUMNS = ("completion", "reward", "outcome")


def records_of(result: Evaluation, processor: Processor) -> list[dict[str, Any]]:
    """A record of each answer, with what it earned."""
    records = [
        record
        for phase, groups in zip(HOWS, (result.greedy, result.sampled), strict=True)
        for record in rollout_records(groups, processor, phase=phase, step=0)
    ]
    return [
        record | {"set": answer.set, "row": answer.row, "accuracy": answer.value}
        for record, answer in zip(records, result.answers, strict=True)
    ]


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
    records = records_of(result, processor)
    media: Iterable[Media] = images_of([*result.greedy, *result.sampled])
    write_rollouts(path, records, media)
    write_table(folder / "table.csv", records)
    (folder / "summary.json").write_text(json.dumps(summary, indent=1) + "\n", encoding="utf-8")
    return path


def write_table(path: Path, records: Sequence[Mapping[str, Any]]) -> None:
    """Write a line a sample: its set, id and answer, then of each answer the text, reward and outcome."""
    lines: dict[tuple[str, int, str], dict[str, Any]] = {}
    several = any(record["phase"] == "sampled" and record["group_index"] for record in records)
    for record in records:
        key = (record["set"], record["row"], record["sample_id"])
        answer = json.dumps(record["answer"], ensure_ascii=False)
        line = lines.setdefault(key, {"set": record["set"], "id": record["sample_id"], "answer": answer})
        numbered = several and record["phase"] == "sampled"
        name = f"sampled_{record['group_index'] + 1}" if numbered else record["phase"]
        line |= {f"{name}_{column}": record[column] for column in COLUMNS}
    columns = dict.fromkeys(column for line in lines.values() for column in line)
    with path.open("w", encoding="utf-8", errors="backslashreplace", newline="") as file:
        table = csv.DictWriter(file, list(columns))
        table.writeheader()
        table.writerows(lines.values())
