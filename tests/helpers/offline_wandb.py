"""Reads what W&B keeps of a run in offline mode, which it would upload later."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

BLOCK, HEADER = 32768, 7
"""Bytes; the file is a log of records as LevelDB's, behind a header of as many bytes."""


def offline_files(run_dir: Path) -> list[Path]:
    """The files of a run's parts, in their order."""
    return sorted(run_dir.glob("wandb/offline-run-*/run-*.wandb"))


def history(file: Path) -> list[dict[str, Any]]:
    """What was logged, a dict a step."""
    from wandb.proto.wandb_internal_pb2 import Record  # type: ignore[attr-defined]

    steps = []
    for data in _records(file.read_bytes()):
        record = Record.FromString(data)
        if record.WhichOneof("record_type") == "history":
            steps.append(_nested(record.history.item))
    return steps


def _nested(items: Any) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for item in items:
        *above, last = item.nested_key or [item.key]
        inner = values
        for key in above:
            inner = inner.setdefault(key, {})
        inner[last] = json.loads(item.value_json)
    return values


def run_id(file: Path) -> str:
    """The name that the run has there."""
    return file.stem.removeprefix("run-")


def _records(data: bytes) -> Iterator[bytes]:
    at, parts = HEADER, b""
    while at + HEADER <= len(data):
        left = BLOCK - at % BLOCK
        if left < HEADER:
            at += left
            continue
        size, kind = int.from_bytes(data[at + 4 : at + 6], "little"), data[at + 6]
        parts += data[at + HEADER : at + HEADER + size]
        at += HEADER + size
        if kind in (1, 4):  # a whole record, or the last part of one
            yield parts
            parts = b""
