"""The page of `vlrl compare --report`: the rows that one of two evaluations won, from both folders."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from vlrl.experiments.compare import compare_runs, paired_rows
from vlrl.tracking.heldout import add_heldout
from vlrl.viewer.pages.comparison import write_comparison


def records_of(run_dir: Path) -> list[dict[str, Any]]:
    """A record a sample."""
    lines = (run_dir / "rollouts" / "after.jsonl").read_text(encoding="utf-8").splitlines()
    found = [json.loads(line) for line in lines]
    return list({record["sample_id"]: record for record in found}.values())


@pytest.fixture
def evaluations(run_dir: Path, tmp_path: Path) -> tuple[Path, Path]:
    """Two folders as of `vlrl eval --out`: of three rows b wins two and loses one."""
    folders = (tmp_path / "a", tmp_path / "b")
    for folder, wrong in zip(folders, ({0, 1}, {2}), strict=True):
        folder.mkdir()
        shutil.copytree(run_dir / "media", folder / "media")
        lines = []
        for index, record in enumerate(records_of(run_dir)):
            value = float(index not in wrong)
            answer = {"how": "greedy", "set": "test", "sample_id": record["sample_id"], "row": index}
            answer |= {"accuracy": value, "reward": value}
            lines.append(json.dumps({**record, "reward": value, "heldout": answer}) + "\n")
        (folder / "samples.jsonl").write_text("".join(lines), encoding="utf-8")
    return folders


def written(a: Path, b: Path, page: Path) -> str:
    rows = paired_rows(a, b)
    write_comparison(page, a, b, rows, compare_runs(rows))
    return page.read_text(encoding="utf-8")


def test_rows_that_were_won_and_lost_stand_with_images_and_both_answers(
    evaluations: tuple[Path, Path], run_dir: Path, tmp_path: Path
) -> None:
    text = written(*evaluations, tmp_path / "page.html")
    won, lost = text.split("<h2>B earned more</h2>")[1].split("<h2>A earned more</h2>")
    ids = [record["sample_id"] for record in records_of(run_dir)]
    assert [identifier in won for identifier in ids[:4]] == [True, True, False, False]
    assert [identifier in lost for identifier in ids[:4]] == [False, False, True, False]
    assert won.count("data:image/png") == 4 and lost.count("data:image/png") == 2  # two digits a row
    assert won.count('<span class="when">A</span>') == won.count('<span class="when">B</span>') == 2
    assert "On 2 of the rows asked greedy; 2 of them below" in won


def test_rows_of_two_sets_with_one_id_are_two_cards(evaluations: tuple[Path, Path], tmp_path: Path) -> None:
    for folder in evaluations:
        file = folder / "samples.jsonl"
        first = json.loads(file.read_text(encoding="utf-8").splitlines()[0])
        first["heldout"]["set"] = "other"
        with file.open("a", encoding="utf-8") as kept:
            kept.write(json.dumps(first) + "\n")
    text, name = written(*evaluations, tmp_path / "page.html"), "digit_sum/heldout/0"
    assert f">test/{name}<" in text and f">other/{name}<" in text


def test_of_runs_the_rollouts_of_the_report_are_shown(run_dir: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(run_dir, other)
    ids = [record["sample_id"] for record in records_of(run_dir)]
    for folder, value in ((run_dir, 0.0), (other, 1.0)):
        answers = [
            {"how": how, "sample_id": name, "accuracy": value, "reward": value}
            for how in ("greedy", "sampled")
            for name in (*ids, "not kept")
        ]
        add_heldout(folder, 10**6, answers)
    text = written(run_dir, other, tmp_path / "page.html")
    assert f"On {len(ids) + 1} of the rows asked sampled; {len(ids)} of them below" in text
    assert "none whose rollouts a folder did not keep" in text


def test_without_any_rollouts_the_numbers_are_there(tmp_path: Path) -> None:
    for name, value in (("a", 0.0), ("b", 1.0)):
        (tmp_path / name).mkdir()
        answers = [
            {"how": "greedy", "sample_id": f"<b>{n}", "accuracy": value, "reward": value} for n in range(3)
        ]
        add_heldout(tmp_path / name, 5, answers)
    text = written(tmp_path / "a", tmp_path / "b", tmp_path / "page.html")
    assert "+1.0000" in text and "On 3 of the rows asked greedy; 0 of them below" in text
