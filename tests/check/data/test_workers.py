"""Processes that audit rows: one that hangs is not waited for, one that cannot start says why."""

from __future__ import annotations

from pathlib import Path

import pytest
from builders import make_config

from vlrl.check.data.plan import plan_check
from vlrl.check.data.workers import audit_rows
from vlrl.config import Config
from vlrl.errors import ConfigError

DATASET = """
import os, time

class Rows:
    def __len__(self):
        return 3

    def __getitem__(self, index):
        if index == 1:
            {trouble}
        return {{"id": "abc"[index], "messages": [{{"role": "user", "content": f"Say {{index}}."}}]}}
"""


def config_with(folder: Path, trouble: str) -> Config:
    (folder / "rows.py").write_text(DATASET.format(trouble=trouble))
    return make_config("models/not_there", data={"train": {"name": f"{folder / 'rows.py'}:Rows"}}, rewards=[])


def test_a_row_that_never_ends_is_given_up(tmp_path: Path) -> None:
    job, _ = plan_check(config_with(tmp_path, "time.sleep(10_000)"))
    seen: list[int] = []
    audits = audit_rows(job, 1, lambda audit: seen.append(audit.row), row_timeout_s=3.0)
    assert [(a.row, [p.reason for p in a.problems]) for a in audits] == [
        (0, []),
        (1, ["kills the reader"]),
        (2, []),
    ]
    assert "took more than 3 s" in audits[1].problems[0].message
    assert sorted(seen) == [0, 1, 2]


def test_a_row_is_blamed_only_if_it_kills_twice(tmp_path: Path) -> None:
    """Memory that another program took, for instance, is not the row's fault."""
    marker = str(tmp_path / "once")
    trouble = f"os.path.exists({marker!r}) or (open({marker!r}, 'w').close(), os._exit(9))"
    job, _ = plan_check(config_with(tmp_path, trouble))
    audits = audit_rows(job, 1)
    assert Path(marker).exists()
    assert [(a.id, a.problems) for a in audits] == [("a", ()), ("b", ()), ("c", ())]


def test_a_worker_that_cannot_open_the_model_says_why(tmp_path: Path) -> None:
    config = config_with(tmp_path, "pass")
    (tmp_path / "empty").mkdir()
    model = config.model.model_copy(update={"path": str(tmp_path / "empty")})
    job, _ = plan_check(config.model_copy(update={"model": model}))
    with pytest.raises(ConfigError, match=r"without a config\.json"):
        audit_rows(job, 1)
