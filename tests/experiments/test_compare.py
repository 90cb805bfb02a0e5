import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from vlrl.errors import ConfigError
from vlrl.experiments import compare
from vlrl.experiments.compare import Comparison, paired, paired_rows
from vlrl.tracking.heldout import add_heldout, read_heldout, start_heldout


def write_run(folder: Path, values: dict[str, float | None], step: int = 10) -> Path:
    folder.mkdir(exist_ok=True)
    answers = [
        {"how": how, "sample_id": row, "accuracy": value, "reward": value}
        for how in ("greedy", "sampled")
        for row, value in values.items()
    ]
    add_heldout(folder, step, answers)
    return folder


def compare_runs(*args: Any, **kwargs: Any) -> list[Comparison]:
    return compare.compare_runs(paired_rows(*args, **kwargs))


def test_the_interval_is_that_of_the_paired_differences() -> None:
    rng = np.random.default_rng(0)
    a = rng.integers(0, 2, 400).astype(np.float32)
    b = np.where(rng.random(400) < 0.2, 1, a).astype(np.float32)  # never worse
    found = paired(a, b)
    differences = b - a
    half = 1.96 * differences.std() / np.sqrt(400)
    assert found.difference == pytest.approx(differences.mean())
    assert found.low == pytest.approx(differences.mean() - half, abs=0.01)
    assert found.high == pytest.approx(differences.mean() + half, abs=0.01)
    assert (found.num_better, found.num_worse) == (int(differences.sum()), 0)
    assert found.p_value < 0.001


def test_the_p_value_is_mcnemars_for_right_and_wrong() -> None:
    """Sign flips of ±1 are the exact test of the discordant pairs."""
    a = np.array([1] * 3 + [0] * 9 + [1] * 20, np.float32)
    b = np.array([0] * 3 + [1] * 9 + [1] * 20, np.float32)
    exact = stats.binomtest(3, 12, 0.5).pvalue
    assert paired(a, b).p_value == pytest.approx(exact, abs=0.02)


def test_a_difference_of_chance_is_none() -> None:
    """The interval has 0 in it about 95 times of 100 where two runs differ by chance."""
    rng, covered = np.random.default_rng(1), 0
    for _ in range(40):
        a, b = rng.normal(size=(2, 60)).astype(np.float32)
        found = paired(a, b)
        covered += found.low <= 0 <= found.high
    assert covered >= 34


def test_equal_runs_are_equal(tmp_path: Path) -> None:
    values = {f"row/{n}": float(n % 2) for n in range(30)}
    a, b = write_run(tmp_path / "a", dict(values)), write_run(tmp_path / "b", dict(values))
    for found in compare_runs(a, b):
        assert (found.difference, found.low, found.high, found.p_value) == (0, 0, 0, 1)


def test_rows_are_paired_by_their_ids(tmp_path: Path) -> None:
    a = write_run(tmp_path / "a", {"x": 0.0, "y": 1.0, "only a": 1.0, "failed": None})
    b = write_run(tmp_path / "b", {"y": 1.0, "failed": 1.0, "x": 1.0})
    greedy, sampled = compare_runs(a, b)
    assert (greedy.how, sampled.how) == ("greedy", "sampled")
    assert (greedy.num_rows, greedy.mean_a, greedy.mean_b, greedy.num_better) == (2, 0.5, 1.0, 1)


def test_an_earlier_evaluation_can_be_chosen(tmp_path: Path) -> None:
    a, b = (write_run(tmp_path / name, {"x": 0.0, "y": 0.0}, step=0) for name in "ab")
    write_run(b, {"x": 1.0, "y": 1.0}, step=20)
    assert compare_runs(a, b)[0].difference == 1
    assert compare_runs(a, b, step=0)[0].difference == 0
    with pytest.raises(ConfigError, match="not evaluated after 20 updates, but after 0"):
        compare_runs(a, b, step=20)


def test_runs_that_share_no_row_are_told(tmp_path: Path) -> None:
    a, b = write_run(tmp_path / "a", {"x": 1.0}), write_run(tmp_path / "b", {"y": 1.0})
    with pytest.raises(ConfigError, match="share no held-out row"):
        compare_runs(a, b)
    (tmp_path / "c").mkdir()
    with pytest.raises(ConfigError, match=r"has no heldout\.jsonl"):
        compare_runs(a, tmp_path / "c")


def test_sets_and_categories_are_compared_of_kept_evaluations_too(tmp_path: Path) -> None:
    for name, values in (("a", [0.0, 0.0, 1.0]), ("b", [1.0, 0.0, 0.0])):
        (tmp_path / name).mkdir()
        answers = [
            {"how": "greedy", "set": kind, "sample_id": row, "accuracy": value, "parts": [f"set={kind}"]}
            for kind, value in zip(("easy", "hard", "new"), values, strict=True)
            for row in ("x", "y")
        ]
        answers.append({**answers[0], "set": "odd", "sample_id": "z", "parts": ["set=odd"], "accuracy": 1.0})
        text = "".join(json.dumps({"heldout": answer}) + "\n" for answer in answers)
        (tmp_path / name / "samples.jsonl").write_text(text)
    found = {each.part: each.difference for each in compare_runs(tmp_path / "a", tmp_path / "b")}
    assert found == {"": 0.0, "set=easy": 1.0, "set=hard": 0.0, "set=new": -1.0}  # one odd row is no interval


def test_a_resumed_run_has_each_evaluation_once(tmp_path: Path) -> None:
    for step in (0, 5, 10):
        write_run(tmp_path, {"x": 1.0}, step)
    start_heldout(tmp_path, first_step=5)
    assert [line["step"] for line in read_heldout(tmp_path)] == [0, 0, 5, 5]
    start_heldout(tmp_path, first_step=0)
    assert read_heldout(tmp_path) == []
