"""`vlrl runs`, `vlrl compare` and `vlrl sweep --report` on small folders."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from vlrl.config.options import LoggingConfig
from vlrl.tracking.heldout import add_heldout
from vlrl.tracking.sinks import MetricSinks

CONFIG = Path(__file__).parents[2] / "configs" / "quickstart.yaml"


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    folder = tmp_path / "runs"
    for name, lr, values in (("a", 1e-4, [0.0] * 8 + [1.0] * 2), ("b", 3e-4, [1.0] * 10)):
        run = folder / name
        run.mkdir(parents=True)
        (run / "config.yaml").write_text(f"num_steps: 2\noptim: {{lr: {lr}}}\nrun: {{seed: 0}}\n")
        with MetricSinks(run, LoggingConfig(tensorboard=False)) as sinks:
            sinks.log(0, {"reward/mean": lr, "optim/lr": lr})
        answers = [
            {"how": "greedy", "sample_id": f"row/{n}", "accuracy": value, "reward": value}
            for n, value in enumerate(values)
        ]
        add_heldout(run, 2, answers)
    return folder


def test_runs_are_listed_best_first(runs: Path, vlrl: Any) -> None:
    assert vlrl("runs", "tag", runs / "b", "[bold]new", "--note", "hm").code == 0
    result = vlrl("runs", "list", runs, "--best", "reward/mean", "--json")
    assert [run["name"] for run in result.json["runs"]] == ["b", "a"]
    assert "[bold]new" in result.err and "stopped" in result.err
    assert [
        run["name"] for run in vlrl("runs", "list", runs, "--tag", "[bold]new", "--json").json["runs"]
    ] == ["b"]


def test_configs_are_compared(runs: Path, vlrl: Any) -> None:
    result = vlrl("runs", "diff", runs / "a", runs / "b", "--json")
    assert result.json["changes"] == {"optim.lr": [1e-4, 3e-4]}


def test_runs_are_compared_row_by_row(runs: Path, vlrl: Any) -> None:
    page = runs / "comparison.html"
    result = vlrl("compare", runs / "a", runs / "b", "--json", "--report", page)
    assert page.is_file() and str(page.name) in result.err
    (greedy,) = result.json["comparisons"]
    assert (greedy["num_better"], greedy["num_worse"], greedy["difference"]) == (8, 0, 0.8)
    assert "greedy: B is better" in result.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["runs", "list", "nowhere"], "is not a folder"),
        (["runs", "list", "runs", "--best", "speed"], "no run has it; there are"),
        (["runs", "diff", "runs/a", "nowhere"], "is not a run's folder"),
        (["compare", "runs/a", "nowhere"], "has no heldout.jsonl"),
        (
            ["compare", "runs/a", "runs/b", "--step", "0", "--report", "p.html"],
            "leave out --step or --report",
        ),
        (["sweep", CONFIG, "--seeds", "zero"], "must be numbers"),
        (["sweep", CONFIG, "--vary", "optim.lr"], "must be KEY=VALUE"),
        (["sweep", CONFIG, "--method", "rl"], "is not one of"),
        (["sweep", CONFIG, "--vary", "optim.learning=1"], "optim.learning"),
    ],
)
def test_a_wrong_argument_is_named(runs: Path, arguments: list[Any], words: str, vlrl: Any) -> None:
    result = vlrl(*arguments)
    assert result.code == 2 and words in " ".join(result.err.split())


def test_a_sweep_is_reported_before_it_is_done(tmp_path: Path, vlrl: Any) -> None:
    result = vlrl("sweep", CONFIG, "--vary", "optim.lr=1e-4,3e-4", "--folder", tmp_path, "--report", "--json")
    assert result.code == 0 and len(result.json["rows"]) == 2
    assert "not started" in result.err
