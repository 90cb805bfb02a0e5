import json
import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from PIL import Image

from vlrl.config.options import LoggingConfig
from vlrl.errors import ConfigError, Interrupted
from vlrl.experiments import sweep_report
from vlrl.experiments.registry import config_changes
from vlrl.experiments.sweep import Sweep, do_sweep, parse_vary, require_runnable, run_name
from vlrl.run.checkpoint import checkpoints
from vlrl.run.lineage import read_lineage
from vlrl.tracking.sinks import MetricSinks

CONFIG = Path(__file__).parents[2] / "configs" / "quickstart.yaml"


def planned(
    folder: Path, vary: str = "optim.lr=1e-4,3e-4", seeds: tuple[int, ...] = (0, 1), **more: Any
) -> Sweep:
    options = {"config": CONFIG, "overrides": ["model.path=unused"], **more}
    return Sweep(vary=parse_vary([vary] if vary else []), seeds=seeds, folder=folder, **options)


def test_every_combination_is_a_run_of_each_seed(tmp_path: Path) -> None:
    sweep = Sweep(
        CONFIG,
        ["model.path=unused"],
        parse_vary(["optim.lr=1e-4,3e-4", "algorithm=grpo,gspo"]),
        [0, 7],
        tmp_path,
    )
    assert len(sweep.runs) == 8 and len({run.name for run in sweep.runs}) == 8
    last = sweep.runs[-1]
    assert (last.values, last.seed) == ({"optim.lr": 3e-4, "algorithm": "gspo"}, 7)
    config = sweep.loaded(last)
    assert (config.optim.lr, config.run.seed, config.run_dir) == (3e-4, 7, tmp_path / last.name)
    assert config.algorithm.loss.name == "gspo"


@pytest.mark.parametrize("values", [["null", "5"], ["true", "false"], ["[a, b]", "{x: 1}"]])
def test_values_are_yaml_and_come_back_as_they_are(tmp_path: Path, values: list[str]) -> None:
    vary = parse_vary([f"key={','.join(values)}"])
    for value in vary["key"]:
        sweep = Sweep(CONFIG, [], {"key": [value]}, [0], tmp_path)
        (text,) = [each for each in sweep.arguments(sweep.runs[0]) if each.startswith("key=")]
        assert yaml.safe_load(text.removeprefix("key=")) == value


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["lr"], "must be KEY=VALUE"),
        (["lr="], "must be KEY=VALUE"),
        (["lr=[1"], "not YAML"),
        (["a=1", "a=2"], "given twice"),
        (["run.seed=1,2"], "--seeds"),
    ],
)
def test_wrong_values_are_named(given: list[str], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        parse_vary(given)


def test_a_wrong_config_is_refused_before_the_first_run(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"optim\.lr"):
        require_runnable(planned(tmp_path, "optim.lr=1e-4,-1"), 1)
    with pytest.raises(ConfigError, match="would be named"):
        require_runnable(planned(tmp_path, "run.tags=a/b,a b"), 1)


def test_names_are_folders() -> None:
    assert run_name({"algorithm.credit.name": "gae", "x": "a/b: c"}, 3) == "name_gae-x_a_b_c-seed_3"


def write_done(sweep: Sweep, number: int, accuracy: float) -> None:
    folder = sweep.folder / sweep.runs[number].name
    folder.mkdir(parents=True)
    (folder / "config.yaml").write_text("num_steps: 2")
    with MetricSinks(folder, LoggingConfig(tensorboard=False)) as sinks:
        for step in range(2):
            sinks.log(step, {"heldout/accuracy_greedy": accuracy / 2, "optim/lr": 1e-4})
    (folder / "summary.json").write_text(json.dumps({"heldout_accuracy_after_greedy": accuracy}))


def test_the_best_combination_comes_first_with_its_interval(tmp_path: Path) -> None:
    sweep = planned(tmp_path)
    for number, accuracy in enumerate([0.5, 0.6, 0.8, 0.9]):
        write_done(sweep, number, accuracy)
    name = sweep_report.metric_of(sweep, None)
    best, other = sweep_report.results(sweep, name)
    assert best.values == {"optim.lr": 3e-4} and best.by_seed == {0: 0.8, 1: 0.9}
    assert best.mean == pytest.approx(0.85)
    assert best.half_width == pytest.approx(
        12.706 * 0.0707 / 2**0.5, rel=1e-3
    )  # t with one degree of freedom
    assert other.mean == pytest.approx(0.55)
    image = tmp_path / "sweep.png"
    assert sweep_report.draw(sweep, [best, other], name, image)
    assert Image.open(image).width > 500


def test_runs_that_are_missing_or_alone_have_no_interval(tmp_path: Path) -> None:
    sweep = planned(tmp_path)
    assert not sweep_report.draw(sweep, sweep_report.results(sweep, "x"), "x", tmp_path / "x.png")
    write_done(sweep, 0, 0.5)
    first, second = sweep_report.results(sweep, sweep_report.METRIC)
    assert (first.mean, first.half_width, first.statuses) == (0.5, None, ["finished", "not started"])
    assert second.mean is None


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_sweep_trains_is_stopped_and_goes_on(tiny_model: Path, tmp_path: Path) -> None:
    """Two seeds of supervised training, in the runs' own processes; Ctrl-C comes in the first one."""
    config = tmp_path / "sft.yaml"
    config.write_text(
        yaml.safe_dump(
            {
                "model": {"path": str(tiny_model)},
                "data": {"train": {"name": "digit_sum"}},
                "sft": {"batch_size": 4},
                "num_steps": 60,
                "checkpoint": {"every": 2},
                "logging": {"tensorboard": False},
            }
        )
    )
    sweep = Sweep(config, [], {}, [0, 1], tmp_path / "sweep", "sft")
    first = sweep.folder / sweep.runs[0].name

    def interrupts(text: str) -> None:
        if "begins" in text:
            threading.Thread(target=interrupt_once, daemon=True).start()

    def interrupt_once() -> None:
        while not checkpoints(first):
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(Interrupted, match="goes on"):
        do_sweep(sweep, 1, interrupts)
    assert not (first / "summary.json").is_file() and checkpoints(first)
    assert list(do_sweep(sweep, 2, lambda text: None).values()) == ["done", "done"]
    assert [entry["first_step"] > 0 for entry in read_lineage(first)] == [False, True]
    (row,) = sweep_report.results(sweep, "sft/loss")
    assert row.half_width is not None and set(row.by_seed) == {0, 1}
    assert len(config_changes([sweep.folder / run.name for run in sweep.runs])) == 2  # seed and name


def test_runs_that_are_done_are_not_repeated_and_a_failed_one_is_told(tmp_path: Path) -> None:
    sweep = planned(tmp_path, seeds=(0,))
    write_done(sweep, 0, 0.5)
    told: list[str] = []
    outcomes = do_sweep(sweep, 1, told.append)  # the other one has no model
    assert list(outcomes.values()) == ["done before", "failed"]
    assert "unused" in (tmp_path / f"{sweep.runs[1].name}.log").read_text()
    assert len(told) == 2 and "failed" in told[1]
