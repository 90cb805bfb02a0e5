"""Rows as a source's config reads them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from vlrl.config.data import DatasetConfig
from vlrl.data import open_dataset
from vlrl.types import Row


@pytest.fixture
def read(tmp_path: Path) -> Any:
    """Records, and fields of the source's config → its rows."""

    def rows(*records: Any, **fields: Any) -> list[Row]:
        (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, records)))
        return list(open_dataset(DatasetConfig(name=str(tmp_path / "rows.jsonl"), **fields), "data.train"))

    return rows
