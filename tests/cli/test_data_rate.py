"""`vlrl data rate`: what `vlrl data check` and `vlrl data show` make of its files, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from vlrl.check.data.plan import read_target
from vlrl.data.curriculum.open import header_of, rate_path
from vlrl.data.curriculum.rate_file import RateJournal
from vlrl.data.open import open_dataset


@pytest.fixture
def config(tmp_path: Path) -> Path:
    rows = [{"problem": f"question {i}", "answer": "1"} for i in range(4)]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    tree = {
        "model": {"path": "owner/name"},
        "data": {"train": {"name": str(tmp_path / "rows.jsonl")}},
        "rewards": "answer_exact",
    }
    (tmp_path / "run.yaml").write_text(json.dumps(tree))
    return tmp_path / "run.yaml"


def rate(config: Path, *overrides: str) -> Path:
    """A file as `vlrl data rate` leaves it; row 3 is too long."""
    loaded = read_target(str(config), overrides)
    options = loaded.data.train[0]
    header = header_of(loaded, options, open_dataset(options, "data.train"), num_samples=8)
    path = rate_path(loaded, options, header)
    journal = RateJournal(path, header)
    journal.add([0, 1, 2], [8, 2, 0], [8, 8, 7], unusable=[3])
    journal.finish()
    return path


def test_check_prints_the_rates_beside_the_data(vlrl: Any, config: Path) -> None:
    before = vlrl("data", "check", config, "--json", "--no-rewards", "model.path=/none")
    assert before.json["pass_rates"] == []
    path = rate(config)
    result = vlrl("data", "check", config, "--json", "--no-rewards", "model.path=/none")
    (found,) = result.json["pass_rates"]
    assert found["path"] == str(path)
    assert (found["num_rated"], found["num_unusable"], found["num_missing"]) == (3, 1, 0)
    assert (found["num_never"], found["num_always"], sum(found["between"])) == (1, 1, 1)
    assert "Pass rates" in result.err


def test_a_rated_file_of_other_rows_is_not_theirs(vlrl: Any, config: Path) -> None:
    rate(config)
    rows = config.parent / "rows.jsonl"
    rows.write_text(rows.read_text() + '{"broken\n')
    result = vlrl("data", "check", config, "--json", "--no-rewards", "model.path=/none")
    assert result.json["pass_rates"] == []
    assert result.code == 1


def test_show_says_how_often_a_row_is_solved(vlrl: Any, config: Path) -> None:
    rate(config, "model.path=/none")
    vlrl("data", "show", config, "model.path=/none", "--out", "own.html")
    page = (config.parent / "own.html").read_text()
    assert "2 of 8 completions passed<" in page
    assert "0 of 7 completions passed<" in page
    vlrl("data", "show", config, "model.path=/other", "--out", "other.html")
    assert "2 of 8 completions passed by another model (" in (config.parent / "other.html").read_text()


def test_rows_without_numbers_are_refused_before_an_engine_starts(vlrl: Any, config: Path) -> None:
    result = vlrl("train", config, "data.train.sampler=learnabilty")
    assert result.code == 2
    assert "did you mean 'learnability'" in result.err
    result = vlrl(
        "train", config, "data.train.sampler={name: band, adaptive: false, start_rates: gone.rates}"
    )
    assert result.code == 2
    assert "gone.rates does not exist; `vlrl data rate CONFIG` writes it" in result.err
