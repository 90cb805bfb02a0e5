"""The rows of the tables of rollouts that sinks show, read from a step's file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

COLUMNS = ("step", "sample", "group", "index", "prompt", "completion", "reward", "advantage", "outcome")
"""Of a table, left to right; the images come after them."""

READ = (
    *("step", "sample_id", "group", "group_index", "messages", "completion", "reward", "advantage"),
    *("outcome", "media"),
)
"""Columns of the file, see `vlrl.tracking.rollouts.table`; the ledgers are not read."""


@dataclass(frozen=True, slots=True)
class RolloutRow:
    """A rollout as a table shows it.

    Attributes:
        values: by the names of COLUMNS; a number may be missing.
        images: PNG files, in the order in which the model saw them.
    """

    values: Mapping[str, Any]
    images: tuple[Path, ...]

    def cells(self) -> list[Any]:
        """The values, in the columns' order."""
        return [self.values[name] for name in COLUMNS]


def read_rows(file: Path, run_dir: Path, most: int) -> list[RolloutRow]:
    """The first rollouts of a step's file; none if the file is gone, as old ones make room."""
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(file, columns=list(READ))
    except FileNotFoundError:
        return []
    return [_row(row, run_dir) for row in table.slice(0, most).to_pylist()]


def _row(row: Mapping[str, Any], run_dir: Path) -> RolloutRow:
    values = {"sample": row["sample_id"], "index": row["group_index"], "prompt": _prompt(row["messages"])}
    values |= {name: row[name] for name in COLUMNS if name not in values}
    paths = [run_dir / medium["path"] for medium in row["media"] or ()]
    return RolloutRow(values, tuple(path for path in paths if path.is_file()))


def _prompt(messages: str) -> str:
    """The messages of a sample as lines, media as <image>."""
    lines = []
    for message in json.loads(messages) or ():
        content = message["content"]
        parts = [content] if isinstance(content, str) else [_text(part) for part in content]
        lines.append(f"{message['role']}: {' '.join(parts)}")
    return "\n".join(lines)


def _text(part: Any) -> str:
    if isinstance(part, str):
        return part
    return str(part["text"]) if "text" in part else f"<{part.get('type', 'medium')}>"
