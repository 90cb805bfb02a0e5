"""Rollouts read again, from JSON of any version and from the tables of training, as `records` has them."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

LEDGER_KEYS = ("token_ids", "token_texts", "loss_mask", "sampler_logprobs")
AS_JSON = ("messages", "answer", "metadata", "env")
AS_PAIRS = ("parts", "info", "explanations")


def read_rollouts(path: Path) -> list[dict[str, Any]]:
    """The records of a file; a missing file has none, a line of JSON cut short by a kill is skipped."""
    if not path.is_file():
        return []
    if path.suffix == ".parquet":
        return [record_of(row) for row in pq.read_table(path).to_pylist()]
    records = []
    for line in path.read_text(encoding="utf-8").split("\n"):
        try:
            record = json.loads(line)
        except ValueError:
            continue
        if isinstance(record, dict):
            records.append(present_form(record))
    return records


def present_form(record: dict[str, Any]) -> dict[str, Any]:
    """A record as it is written today; until there were episodes it held one ledger, of one turn, flat."""
    if "ledgers" in record or "token_ids" not in record:
        return record
    ledger = {key: record[key] for key in LEDGER_KEYS if key in record}
    mask = ledger.get("loss_mask", [])
    start = mask.index(1) if 1 in mask else len(mask)
    turn = {
        "ledger": 0,
        "context": [0, start],
        "action": [start, len(mask)],
        "text": record.get("completion", ""),
        "finished": record.get("outcome") != "truncated",
        "reward": 0.0,
        "invalid": False,
        "state": "",
        "seen": "",
        "form": "",
        "canvases": [],
        "info": {},
        "media": list(range(len(record.get("media", [])))),
        "advantage": record.get("advantage"),
    }
    kept = {key: value for key, value in record.items() if key not in ledger}
    return {**kept, "turns": [turn], "ledgers": [ledger]}


def record_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of a table (`vlrl.tracking.rollouts.table`) as a record of JSON, with all columns."""
    record = {
        **row,
        **{name: None if row[name] is None else json.loads(row[name]) for name in AS_JSON},
        **{name: {each["name"]: each["value"] for each in row[name]} for name in AS_PAIRS if name in row},
        "phase": "train",
        "turns": [
            turn | {"canvases": json.loads(turn["canvases"]), "info": json.loads(turn["info"])}
            for turn in row["turns"]
        ],
        "ledgers": [_ledger(ledger) for ledger in row["ledgers"]],
    }
    return record


def _ledger(columns: Mapping[str, list[Any]]) -> dict[str, list[Any]]:
    """The ledger of JSON: the mask as numbers, logprobs of 0 where nothing was generated, no infinities."""
    mask = columns["loss_mask"]
    return {
        **columns,
        "loss_mask": [int(generated) for generated in mask],
        "sampler_logprobs": [
            (logprob if math.isfinite(logprob) else None) if generated else 0.0
            for logprob, generated in zip(columns["sampler_logprobs"], mask, strict=True)
        ],
    }
