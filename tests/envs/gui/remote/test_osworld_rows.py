"""OSWorld's task files as rows: what can be verified, without paying the agent that always gives up."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from machine_tasks import TASK

from vlrl.envs.gui.remote.osworld_rows import osworld_rows
from vlrl.errors import ConfigError, DataError

ROOT = Path(__file__).resolve().parents[4]
INFEASIBLE, UNKNOWN = {"func": "infeasible"}, {"func": "compare_table", "result": {}, "expected": {}}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """48 tasks that can be verified, 30 of them infeasible, and 7 that cannot."""
    evaluators: list[Any] = [TASK["evaluator"]] * 18 + [INFEASIBLE] * 30 + [UNKNOWN] * 7
    for number, evaluator in enumerate(evaluators):
        file = tmp_path / ("gimp" if number % 2 else "os") / f"{number}.json"
        file.parent.mkdir(exist_ok=True)
        task = {**TASK, "id": f"t{number}", "evaluator": evaluator}
        file.write_text(json.dumps(task))
    (tmp_path / "test_all.json").write_text(json.dumps({"gimp": ["t1"]}))
    return tmp_path


def test_who_always_gives_up_wins_little(folder: Path) -> None:
    rows, survey = osworld_rows(folder, {"urls": ["u"], "revert": []}, infeasible_share=0.2)
    hopeless = [row for row in rows if row["env"]["task"]["evaluator"] == INFEASIBLE]
    assert survey == (55, 48, 30, 22, 4 / 22) and len(hopeless) == 4
    assert len({row["id"] for row in rows}) == 22 and rows[0]["env"]["options"]["urls"] == ["u"]
    assert osworld_rows(folder, {}, infeasible_share=0.2)[0] != rows
    others = osworld_rows(folder, {"urls": ["u"], "revert": []}, infeasible_share=0.2, seed=1)[0]
    assert {row["id"] for row in others} != {row["id"] for row in rows}


@pytest.mark.parametrize(("share", "always_fail"), [(0.0, 0.0), (0.5, 0.5), (1.0, 30 / 48)])
def test_the_share_is_a_choice(folder: Path, share: float, always_fail: float) -> None:
    assert osworld_rows(folder, {}, infeasible_share=share)[1].always_fail == always_fail


def test_wrong_folders_and_shares_are_named(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="infeasible_share=2"):
        osworld_rows(folder, {}, infeasible_share=2)
    (tmp_path / "none").mkdir()
    with pytest.raises(DataError, match="no task file"):
        osworld_rows(tmp_path / "none", {}, infeasible_share=1)
    (folder / "gimp" / "bad.json").write_text("{")
    with pytest.raises(DataError, match=r"bad\.json: no JSON"):
        osworld_rows(folder, {}, infeasible_share=1)


def test_the_example_writes_rows_and_says_what_they_pay(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "rows.jsonl"
    argv = [
        sys.executable,
        str(ROOT / "examples" / "osworld_rows.py"),
        str(folder),
        str(out),
        "--url",
        "http://m",
    ]
    said = json.loads(subprocess.run(argv, check=True, capture_output=True, text=True).stdout)
    assert said["always_fail"] == 4 / 22 and len(out.read_text().splitlines()) == said["taken"]
