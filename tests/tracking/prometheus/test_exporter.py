"""The driver's endpoint as a real Prometheus server reads it, and the alerts of what it says."""

from __future__ import annotations

import math
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from builders import make_config
from prometheus_client.parser import text_string_to_metric_families
from prometheus_server import prometheus

from vlrl.config import Config
from vlrl.errors import ConfigError, ResourceError
from vlrl.tracking.prometheus.exporter import RunExporter, metric_name
from vlrl.tracking.prometheus.targets import TARGETS_FILE, TargetsFile
from vlrl.tracking.sinks import MetricSinks


def config_of(folder: Path, **options: Any) -> Config:
    logging = {"tensorboard": False, "prometheus_port": 0, **options}
    return make_config(run={"name": "a", "dir": str(folder)}, num_steps=50, logging=logging)


Start = Callable[..., RunExporter]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    started: list[RunExporter] = []

    def begin(counts: Counter[str] | None = None, clock: Callable[[], float] | None = None) -> RunExporter:
        clocks = {"clock": clock} if clock is not None else {}
        exporter = RunExporter(config_of(tmp_path), counts or Counter(), lambda: "GRPO", **clocks)
        started.append(exporter)
        return exporter

    yield begin
    for exporter in started:
        exporter.stop()


def served(exporter: RunExporter) -> dict[tuple[str, ...], float]:
    """(name, values of its labels) → value."""
    with urllib.request.urlopen(f"http://127.0.0.1:{exporter.port}/metrics", timeout=10) as answer:
        families = list(text_string_to_metric_families(answer.read().decode()))
    return {(s.name, *s.labels.values()): s.value for family in families for s in family.samples}


def test_it_serves_the_newest_numbers_and_sums_failures(start: Start) -> None:
    now = [1000.0]
    counts = Counter({"node_disk": 2})
    exporter = start(counts, lambda: now[0])
    assert served(exporter)["vlrl_last_step_timestamp_seconds",] == 1000
    now[0] = 1060.0
    exporter.log(0, {"reward/mean": 0.5, "failures/env_hung": 2.0, "nodes/host/cpu_load": 0.1})
    exporter.log(1, {"reward/mean": 0.75, "failures/env_hung": 1.0, "policy/entropy": math.nan})
    exporter.log(1, {"heldout/accuracy_greedy": 0.9})
    found = served(exporter)
    assert found["vlrl_step",] == 2 and found["vlrl_num_steps",] == 50
    assert found["vlrl_last_step_timestamp_seconds",] == 1060
    assert found["vlrl_start_timestamp_seconds",] == 1000
    assert found["vlrl_reward_mean",] == 0.75 and found["vlrl_heldout_accuracy_greedy",] == 0.9
    assert math.isnan(found["vlrl_policy_entropy",])
    assert found["vlrl_failures_total", "env_hung"] == 3 and found["vlrl_failures_total", "env_died"] == 0
    assert found["vlrl_events_total", "node_disk"] == 2
    assert found["vlrl_phase", "GRPO"] == 1
    assert found["process_resident_memory_bytes",] > 1e6
    assert not any("host" in name for name, *_ in found)  # machines are read apart from steps


def test_machines_have_labels(start: Start) -> None:
    exporter = start()
    exporter.nodes = lambda: {
        "gpu-1": {"alive": 1.0, "gpu0_memory_used": 0.25, "gpu11_memory_used": 0.5},
        "gpu-2": {"alive": 0.0},
    }
    found = served(exporter)
    assert found["vlrl_node_alive", "gpu-1"] == 1 and found["vlrl_node_alive", "gpu-2"] == 0
    assert found["vlrl_node_gpu_memory_used", "0", "gpu-1"] == 0.25
    assert found["vlrl_node_gpu_memory_used", "11", "gpu-1"] == 0.5


def test_names_are_what_prometheus_takes() -> None:
    assert metric_name("reward_by_source/boxes.jsonl") == "vlrl_reward_by_source_boxes_jsonl"
    assert metric_name("reward/größe") == "vlrl_reward_gr__e"


def test_a_port_in_use_names_the_remedy(start: Start, tmp_path: Path) -> None:
    taken = start().port
    with pytest.raises(ResourceError, match=r"logging\.prometheus_port=.*give another port"):
        RunExporter(config_of(tmp_path, prometheus_port=taken), Counter(), lambda: "")


def test_a_missing_package_names_the_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    with pytest.raises(ConfigError, match=r"pip install vlrl\[prometheus\]"):
        RunExporter(config_of(tmp_path), Counter(), lambda: "")


def test_the_list_of_targets_is_kept_in_both_places_and_removed(tmp_path: Path) -> None:
    (run_dir := tmp_path / "runs" / "a").mkdir(parents=True)
    file = TargetsFile(run_dir, tmp_path / "targets")
    file.write([("127.0.0.1:9100", "driver", 0), ("127.0.0.1:9101", "rank", 1)])
    own, shared = run_dir / TARGETS_FILE, tmp_path / "targets" / "a.json"
    assert own.read_text() == shared.read_text() and '"rank"' in own.read_text()
    file.remove()
    assert not own.exists() and not shared.exists()


@pytest.mark.slow
def test_alerts_of_a_hanging_environment_a_full_disk_and_silence(start: Start, tmp_path: Path) -> None:
    now = [0.0]
    exporter = start(clock=lambda: now[0])
    readings = {"alive": 1.0, "run_disk_used": 0.5, "run_disk_free_gib": 9.0, "memory_used": 0.5}
    exporter.nodes = lambda: {"gpu-1": readings}
    targets = TargetsFile(tmp_path)
    targets.write([(f"127.0.0.1:{exporter.port}", "driver", 0)])
    now[0] = time.time()
    with (
        prometheus(tmp_path, tmp_path / TARGETS_FILE) as server,
        MetricSinks(tmp_path, config_of(tmp_path).logging, more=(exporter,)) as sinks,
    ):
        step(sinks, 0, env_hung=0)
        server.until(lambda: server.query("vlrl_step == 1"))
        assert not server.alerts()
        step(sinks, 1, env_hung=3)
        server.until(lambda: server.alerts().get("VlrlEnvironmentsFail", {}).get("kind") == "env_hung")
        readings |= {"run_disk_used": 0.99}
        server.until(lambda: server.alerts().get("VlrlDiskNearlyFull", {}).get("node") == "gpu-1")
        readings |= {"run_disk_used": 0.5}
        server.until(lambda: "VlrlDiskNearlyFull" not in server.alerts())
        now[0] -= 700
        step(sinks, 2, env_hung=0)
        server.until(lambda: "VlrlNoStep" in server.alerts())
        assert server.alerts()["VlrlNoStep"]["run"] == tmp_path.name
        exporter.stop()
        server.until(lambda: server.alerts().get("VlrlProcessDown", {}).get("role") == "driver")


def step(sinks: MetricSinks, number: int, *, env_hung: int) -> None:
    sinks.log(number, {"reward/mean": 0.5, "time_s/step": 1.0, "failures/env_hung": float(env_hung)})
