"""A cleaned file holds the good rows of any source, and reads back as they were."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import data_formats
import pytest
from warm_audit import AuditContext

from vlrl.check.data.check import check_data
from vlrl.check.data.clean import write_clean
from vlrl.check.data.content import answer_sha256, prompt_sha256, source_sha256
from vlrl.check.data.plain import row_media
from vlrl.check.data.plan import plan_check
from vlrl.config import Config, parse_config
from vlrl.config.data import DatasetConfig
from vlrl.data import open_dataset

NUM_ROWS = 5


@pytest.fixture(autouse=True)
def forked_audits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Audits are forks; test_workers.py has them started as everywhere else."""
    monkeypatch.setattr("vlrl.check.data.workers.get_context", AuditContext)


def config_of(**source: Any) -> Config:
    return parse_config({"model": {"path": "models/not_there"}, "data": {"train": source}})


def contents(config: Config) -> list[tuple[str, ...]]:
    """What each row asks and shows, however it is stored."""
    (source,) = config.data.train
    return [
        (
            prompt_sha256(row["messages"]),
            answer_sha256(row),
            *(source_sha256(part["image"], config.media, "w") for part in row_media(row)),
        )
        for row in open_dataset(source, "data.train")
    ]


@pytest.mark.parametrize("write", data_formats.WRITERS.values(), ids=data_formats.WRITERS)
def test_a_cleaned_file_reads_back_as_it_was(
    write: data_formats.Writer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = data_formats.logical_rows(NUM_ROWS)
    rows[3] = rows[1]
    (tmp_path / "data").mkdir()
    monkeypatch.chdir(tmp_path / "data")
    written = write(tmp_path / "data", rows)
    config = config_of(name=written.name, options=written.options)
    job, notes = plan_check(config)
    checked = check_data(job, notes, num_workers=1)
    assert [(a.row, [p.reason for p in a.problems]) for a in checked.bad] == [(3, ["duplicate"])]

    (clean,) = write_clean(checked, tmp_path / "out" / "good.jsonl")
    assert clean.num_rows == NUM_ROWS - 1 == clean.path.read_text(encoding="utf-8").count("\n")
    options = {"image_root": clean.image_root} if clean.image_root else {}
    before = contents(config)
    assert contents(config_of(name=str(clean.path), options=options)) == [*before[:3], before[4]]
    assert not list((tmp_path / "out").glob("*.part*"))


def test_the_rows_of_several_sources_go_into_files_of_their_own(tmp_path: Path) -> None:
    names = []
    for name in ("a", "b"):
        row = {"id": name, "messages": [{"role": "user", "content": f"Say {name}"}], "answer": name}
        (tmp_path / f"{name}.jsonl").write_text(json.dumps(row))
        names.append({"name": str(tmp_path / f"{name}.jsonl")})
    config = parse_config(
        {"model": {"path": "models/not_there"}, "data": {"train": names, "eval": names[:1]}}
    )
    job, notes = plan_check(config)
    checked = check_data(job, notes, num_workers=1)
    assert [source.section for source in checked.sources] == ["data.train.0", "data.train.1", "data.eval"]
    written = write_clean(checked, tmp_path / "out" / "good.jsonl")
    found = {each.path.name: each.num_rows for each in written}
    assert found == {"good.data.train.0.jsonl": 0, "good.data.train.1.jsonl": 1, "good.data.eval.jsonl": 1}


def test_the_smaller_of_two_limits_holds(tmp_path: Path) -> None:
    """DatasetConfig.limit and --limit both hold, whichever is smaller."""
    lines = [{"messages": [{"role": "user", "content": str(i)}]} for i in range(9)]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, lines)))
    config = config_of(name=str(tmp_path / "rows.jsonl"), limit=6)
    for limit, num_rows in ((None, 6), (4, 4), (8, 6)):
        job, _ = plan_check(config, limit=limit)
        assert [source.num_rows for source in job.sources] == [num_rows]
    assert isinstance(job.sources[0].config, DatasetConfig)
