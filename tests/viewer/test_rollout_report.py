"""`vlrl report FILE.jsonl` renders what `vlrl rollout` wrote; `vlrl data check --html` what it found."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from vlrl.errors import ConfigError
from vlrl.viewer.pages.data_check import write_check_page
from vlrl.viewer.pages.report import write_rollout_report


def test_rollouts_of_a_file_become_a_page_beside_it(run_dir: Path) -> None:
    file = run_dir / "rollouts" / "after.jsonl"
    page = write_rollout_report(file)
    assert page == run_dir / "rollouts" / "after.html"
    text = page.read_text(encoding="utf-8")
    record = json.loads(file.read_text(encoding="utf-8").splitlines()[0])
    assert record["sample_id"] in text
    assert "after, completion 1" in text
    assert "mean reward" in text
    assert "data:image/png" in text  # media paths are relative to the run's folder


def test_every_completion_of_a_group_is_shown(run_dir: Path, tmp_path: Path) -> None:
    record = json.loads((run_dir / "rollouts" / "after.jsonl").read_text(encoding="utf-8").splitlines()[0])
    records = [{**record, "group_index": index, "phase": "rollout", "step": 0} for index in range(3)]
    file = tmp_path / "out.jsonl"
    file.write_text("".join(json.dumps(each) + "\n" for each in records), encoding="utf-8")
    text = write_rollout_report(file).read_text(encoding="utf-8")
    for number in (1, 2, 3):
        assert f"rollout, completion {number}" in text


def test_a_file_without_rollouts_is_refused(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text('{"prompt": "a"}\n')
    with pytest.raises(ConfigError, match="holds no rollouts"):
        write_rollout_report(tmp_path / "rows.jsonl")


def test_a_check_is_a_page_with_every_bad_row_and_no_markup_of_theirs(tmp_path: Path) -> None:
    source = {"section": "data.train", "name": "x.jsonl", "num_rows": 2, "num_ok": 1, "num_bad": 1}
    source |= {"num_images": 1, "num_videos": 0, "num_audios": 0, "tokens": {"median": 5, "max": 9}}
    problem = {"reason": "no such file", "message": "<script>alert(1)</script>"}
    result = {
        "ok": False, "num_rows": 2, "num_bad": 1, "sources": [source], "token_limit": 100,
        "notes": ["a note"],
        "token_histogram": [{"from": 0, "below": 10, "num_rows": 2}],
        "bad": [{"place": "x.jsonl:2", "id": "b", "problems": [problem]}],
    }  # fmt: skip
    page = tmp_path / "new" / "check.html"
    write_check_page(page, "my.yaml", result)
    text = page.read_text(encoding="utf-8")
    for words in ("1 of 2 rows have a problem", "x.jsonl:2", "no such file", "a note", "data.train: x.jsonl"):
        assert words in text
    assert "<script>" not in text
