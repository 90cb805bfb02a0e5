"""TensorBoard, W&B, trackio and MLflow with their own packages, none of which reaches a network here."""

import json
import os
import socket
import sqlite3
import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from kept_rollouts import FakeProcessor, make_group
from offline_wandb import history, offline_files, run_id

from vlrl.config.options import LoggingConfig, RolloutLogConfig
from vlrl.errors import ConfigError
from vlrl.tracking.rollouts.log import RolloutLog
from vlrl.tracking.rollouts.records import images_of, write_images
from vlrl.tracking.rollouts.table import RolloutPlace, rollout_table
from vlrl.tracking.sinks import MetricSinks, all_sinks, read_metrics
from vlrl.tracking.sinks.rollout_rows import COLUMNS


@pytest.fixture(autouse=True)
def offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(all_sinks, "CLOSE_S", 120.0)  # a busy machine takes long to start W&B's process
    monkeypatch.setenv("WANDB_MODE", "offline")
    for folder in ("DATA", "CACHE", "CONFIG"):
        monkeypatch.setenv(f"WANDB_{folder}_DIR", str(tmp_path / "wandb_home"))
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    trackio = pytest.importorskip("trackio")  # reads its folder's variable when it is imported
    for module in [m for name, m in sys.modules.items() if name.startswith("trackio")]:
        if hasattr(module, "TRACKIO_DIR"):
            monkeypatch.setattr(module, "TRACKIO_DIR", tmp_path / "trackio")
        if hasattr(module, "MEDIA_DIR"):
            monkeypatch.setattr(module, "MEDIA_DIR", tmp_path / "trackio" / "media")
    assert trackio


def keep_rollouts(run_dir: Path, steps: range) -> None:
    group = make_group()
    write_images(run_dir, images_of([group]))
    log = RolloutLog(run_dir, RolloutLogConfig(), first_step=steps[0], tell=lambda *event: None)
    for step in steps:
        table = rollout_table([group], [RolloutPlace(step, step, 0)], FakeProcessor())
        log.write(step, lambda table=table: [table])
    log.close()


def logged(run_dir: Path, config: LoggingConfig, steps: range, resume_step: int | None = None) -> None:
    """A run's part: numbers of steps, and each step's rollouts while the next one runs."""
    told: list[Any] = []
    with MetricSinks(
        run_dir, config, resume_step=resume_step, tell=lambda *event: told.append(event)
    ) as sinks:
        for step in steps:
            sinks.log(step, {"reward/mean": step / 10, "nodes/host-1.x/cpu_load": 0.5})
            keep_rollouts(run_dir, range(step, step + 1))
    assert not told


def config_of(**options: Any) -> LoggingConfig:
    return LoggingConfig(**{"tensorboard": False, "table_rollouts": 1, **options})


def test_wandb_has_numbers_and_tables_and_a_resumed_run_is_the_same(tmp_path: Path) -> None:
    config = config_of(wandb_project="digits")
    logged(tmp_path, config, range(3))
    logged(tmp_path, config, range(2, 4), resume_step=2)
    logged(tmp_path, config, range(1))
    first, resumed, fresh = sorted(offline_files(tmp_path), key=lambda file: file.stat().st_mtime_ns)
    assert run_id(first) == run_id(resumed) != run_id(fresh)
    numbers = [line for line in history(first) if "reward/mean" in line]
    assert [line["reward/mean"] for line in numbers] == [0.0, 0.1, 0.2]
    assert [line["_step"] for line in numbers] == [0, 1, 2]
    assert [line["_step"] for line in history(resumed) if "reward/mean" in line] == [2, 3]
    for line in numbers:  # each step has its own table
        content = json.loads((first.parent / "files" / line["rollouts"]["path"]).read_text())
        assert content["columns"] == [*COLUMNS, "image_0", "image_1"]
        (row,) = content["data"]
        assert row[:4] == [line["_step"], "digit_sum/heldout/0", 0, 0] and "<answer>7</answer>" in row
    kept = [file.read_bytes() for file in (tmp_path / "wandb_home").rglob("*") if file.is_file()]
    images = {sha256(content).hexdigest() for content in kept}
    uploaded = [json.loads(content) for content in kept if content.startswith(b'{"_type')]
    (row,) = next(table["data"] for table in uploaded if "data" in table)
    assert [image["_type"] for image in row[-2:]] == ["image-file"] * 2
    assert {image["sha256"] for image in row[-2:]} <= images


def test_trackio_has_numbers_and_tables_and_a_resumed_run_is_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = config_of(trackio_project="digits")
    logged(tmp_path / "run", config, range(3))
    logged(tmp_path / "run", config, range(3, 4), resume_step=3)
    logged(tmp_path / "run", config, range(1))
    with sqlite3.connect(tmp_path / "trackio" / "digits.db") as base:
        rows = base.execute("select run_id, step, metrics from metrics order by id").fetchall()
    of_runs: dict[str, list[Any]] = {}
    for run, step, metrics in rows:
        values = json.loads(metrics)
        if "reward/mean" in values:
            of_runs.setdefault(run, []).append((step, values["reward/mean"]))
    first, fresh = of_runs.values()
    assert first == [(0, 0.0), (1, 0.1), (2, 0.2), (3, 0.3)] and fresh == [(0, 0.0)]
    tables = [json.loads(metrics)["rollouts"] for _, _, metrics in rows if b"rollouts" in bytes(metrics)]
    assert tables and "<answer>7</answer>" in json.dumps(tables[0])
    assert len(list((tmp_path / "trackio").rglob("*.png"))) >= 2
    assert capsys.readouterr().out == ""


def test_mlflow_has_numbers_and_tables_and_a_resumed_run_is_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from mlflow import MlflowClient

    uri = (tmp_path / "mlruns").as_uri()
    config = config_of(mlflow_uri=uri, mlflow_experiment="digits")
    logged(tmp_path / "run", config, range(3))
    logged(tmp_path / "run", config, range(3, 4), resume_step=3)
    logged(tmp_path / "run", config, range(1))
    assert capsys.readouterr().out == ""
    client = MlflowClient(tracking_uri=uri)
    experiment = client.get_experiment_by_name("digits")
    runs = client.search_runs([experiment.experiment_id], order_by=["attributes.start_time ASC"])
    assert [run.info.status for run in runs] == ["FINISHED"] * 2
    steps = [
        [(m.step, m.value) for m in client.get_metric_history(run.info.run_id, "reward/mean")] for run in runs
    ]
    assert steps == [[(0, 0.0), (1, 0.1), (2, 0.2), (3, 0.3)], [(0, 0.0)]]
    table = json.loads(Path(client.download_artifacts(runs[0].info.run_id, "rollouts.json")).read_text())
    assert [row[:2] for row in table["data"]] == [[step, "digit_sum/heldout/0"] for step in range(4)]
    assert len(list((tmp_path / "mlruns").rglob("*.png"))) >= 1


def test_tensorboard_has_numbers_tables_and_images(tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    logged(tmp_path, config_of(tensorboard=True), range(2))
    events = EventAccumulator(str(tmp_path / "tensorboard"))
    events.Reload()
    assert [(point.step, point.value) for point in events.Scalars("reward/mean")] == [
        (0, 0),
        (1, pytest.approx(0.1)),
    ]
    assert "<answer>7</answer>" in str(events.Tensors("rollouts/text_summary")[0].tensor_proto)
    assert events.Images("rollouts/0")


def test_no_rollouts_leave_unless_they_are_asked_for(tmp_path: Path) -> None:
    logged(tmp_path, config_of(wandb_project="digits", table_rollouts=0), range(2))
    (file,) = offline_files(tmp_path)
    assert not any("rollouts" in line for line in history(file))


@pytest.mark.parametrize(
    ("package", "options"),
    [
        ("wandb", {"wandb_project": "digits"}),
        ("trackio", {"trackio_project": "digits"}),
        ("mlflow", {"mlflow_uri": "http://localhost:1"}),
    ],
)
def test_a_missing_package_names_the_remedy_and_touches_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: str, options: dict[str, Any]
) -> None:
    logged(tmp_path, LoggingConfig(tensorboard=False), range(3))
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ConfigError, match=rf"pip install vlrl\[{package}\]"):
        MetricSinks(tmp_path, LoggingConfig(**options))
    assert len(read_metrics(tmp_path / "metrics.jsonl")) == 3


HANGING = """
import sys, time
from pathlib import Path
from vlrl.config.options import LoggingConfig
from vlrl.tracking.sinks import MetricSinks, all_sinks
all_sinks.CLOSE_S = 5.0
config = LoggingConfig.model_validate_json(sys.argv[2])
with MetricSinks(Path(sys.argv[1]), config, tell=print) as sinks:
    for step in range(20):
        begin = time.perf_counter()
        sinks.log(step, {"reward/mean": 0.5})
        assert time.perf_counter() - begin < 0.5
        time.sleep(0.02)
"""


@pytest.mark.parametrize("service", ["wandb", "mlflow"])
def test_a_server_that_never_answers_stops_neither_the_run_nor_the_program(
    tmp_path: Path, service: str
) -> None:
    """The real packages have threads, processes and hooks at the program's end of their own."""
    with socket.create_server(("127.0.0.1", 0)) as server:  # the system accepts, nobody reads
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        options = {"wandb_project": "digits"} if service == "wandb" else {"mlflow_uri": url}
        online = {"WANDB_MODE": "online", "WANDB_BASE_URL": url, "WANDB_API_KEY": "0" * 40}
        config = LoggingConfig(**{"tensorboard": False, **options}).model_dump_json()
        done = subprocess.run(
            [sys.executable, "-c", HANGING, str(tmp_path / "run"), config],
            capture_output=True,
            text=True,
            env=os.environ | online,
            timeout=60,
        )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("sink_hangs")
    assert len(read_metrics(tmp_path / "run" / "metrics.jsonl")) == 20
