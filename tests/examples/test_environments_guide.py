"""docs/environments.md, "Writing your own environment": its file is written, checked and read as data."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
import yaml
from documents import blocks, follow

from vlrl.config.data import DataConfig
from vlrl.data import open_dataset

GUIDE = (Path(__file__).parents[2] / "docs" / "environments.md").read_text(encoding="utf-8")
SECTION = GUIDE.partition("\n## Writing your own environment\n")[2].partition("\n## ")[0]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    assert follow(SECTION, tmp_path, {**os.environ, "PATH": path, "COLUMNS": "250"}) == 2
    return tmp_path


@pytest.mark.slow
def test_the_environment_is_whole_and_its_rows_are_read(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert [mark for _, mark, _ in blocks(SECTION)] == ["lamps.py", "", "lamps.yaml"]
    monkeypatch.chdir(folder)
    data = DataConfig.model_validate(yaml.safe_load((folder / "lamps.yaml").read_text()))
    (train,), (heldout,) = data.train, data.eval
    rows = [*open_dataset(train, "data.train"), *open_dataset(heldout, "data.eval")]
    assert len(rows) == 1024 + 64
    assert len({row["env"]["seed"] for row in rows}) == len(rows)
    assert {len(row["messages"]) for row in rows} == {2}
