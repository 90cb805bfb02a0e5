import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from vlrl.config.options import LoggingConfig
from vlrl.errors import ConfigError
from vlrl.experiments.registry import config_changes, find_runs, read_run, tag
from vlrl.run.lock import run_lock
from vlrl.tracking.sinks import MetricSinks


def write_run(folder: Path, config: dict[str, Any], *, num_steps: int = 2, finished: bool = True) -> Path:
    folder.mkdir(parents=True)
    (folder / "config.yaml").write_text(yaml.safe_dump(config))
    with MetricSinks(folder, LoggingConfig(tensorboard=False)) as sinks:
        for step in range(num_steps):
            sinks.log(step, {"reward/mean": step / 10, "optim/lr": 1e-4})
    if finished:
        (folder / "summary.json").write_text(json.dumps({"heldout_accuracy_after": 0.75}))
    lineage = [{"started": f"2026-01-0{len(folder.name)}", "code": {"commit": "a" * 40, "is_changed": True}}]
    (folder / "lineage.json").write_text(json.dumps(lineage))
    checkpoint = folder / "checkpoints" / "step_000002"
    checkpoint.mkdir(parents=True)
    (checkpoint / "config.yaml").write_text(yaml.safe_dump(config))
    return folder


CONFIG = {"num_steps": 2, "run": {"seed": 3}, "optim": {"lr": 1e-4, "betas": [0.9, 0.95]}}


def test_runs_are_found_and_their_checkpoints_are_none(tmp_path: Path) -> None:
    write_run(tmp_path / "group" / "bb", CONFIG)
    write_run(tmp_path / "a", CONFIG | {"num_steps": 5}, finished=False)
    first, second = find_runs(tmp_path)
    assert (first.name, first.status, first.num_steps, first.planned_steps) == ("a", "stopped", 2, 5)
    assert (second.name, second.status, second.seed) == ("group/bb", "finished", 3)
    assert second.commit == "a" * 12 + "+"
    assert (second.value("reward/mean"), second.value("heldout_accuracy_after")) == (0.1, 0.75)
    assert second.value("nothing") is None


def test_a_run_whose_lock_is_held_is_running(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "a", CONFIG, finished=False)
    with run_lock(folder):
        assert read_run(folder).status == "running"
    assert read_run(folder).status == "stopped"


def test_configs_are_compared_key_by_key(tmp_path: Path) -> None:
    a = write_run(tmp_path / "a", CONFIG)
    b = write_run(tmp_path / "b", CONFIG | {"optim": {"lr": 3e-4, "betas": [0.9, 0.95]}, "lora": {"rank": 8}})
    assert config_changes([a, b]) == {"optim.lr": [1e-4, 3e-4], "lora.rank": ["absent", 8]}
    assert config_changes([a, a]) == {}


def test_tags_and_notes_are_kept(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "a", CONFIG)
    tag(folder, ["baseline", "old"], note="the first one")
    tag(folder, ["best", "baseline"], ["old"])
    record = read_run(folder)
    assert (list(record.tags), record.note) == (["baseline", "best"], "the first one")


def test_what_is_no_run_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is not a run's folder"):
        read_run(tmp_path)
    with pytest.raises(ConfigError, match="is not a folder"):
        find_runs(tmp_path / "none")
    assert find_runs(tmp_path) == []
