"""Rollouts to score again: every line must be one, so that a mean is not of fewer than it seems."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from vlrl.errors import ConfigError, DataError
from vlrl.tracking.rollouts.paths import rollout_files
from vlrl.tracking.rollouts.read import present_form, read_rollouts


def read_strictly(path: Path) -> list[dict[str, Any]]:
    """The records of a file, or of a run's folder.

    Raises:
        ConfigError: if there is no such file.
        DataError: for one without rollouts, or a line that is none.
    """
    if not path.exists():
        raise ConfigError(
            f"{path} does not exist; give a run's folder, or a file such as RUN/rollouts/after.jsonl"
        )
    records = [record for file in rollout_files(path) for record in _read_file(file)]
    if not records:
        raise DataError(f"{path} has no rollouts")
    return records


def _read_file(file: Path) -> list[dict[str, Any]]:
    if file.suffix == ".parquet":
        return read_rollouts(file)
    records = []
    # Not splitlines(): a completion may hold U+2028, which ends no line of JSONL.
    for number, line in enumerate(file.read_text(encoding="utf-8").split("\n"), 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except ValueError as error:
            raise DataError(f"{file}:{number}: not JSON ({error}); is the file whole?") from error
        if not isinstance(record, dict) or "completion" not in record:
            raise DataError(f"{file}:{number}: no rollout; it has no completion")
        records.append(present_form(record))
    return records
