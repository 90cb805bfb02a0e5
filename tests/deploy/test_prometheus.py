"""deploy/prometheus and deploy/grafana: the rules by promtool, with series that raise each or do not."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_server import DASHBOARD, RULES, dashboard_queries

from vlrl.tracking.metrics import METRICS, NODE_GAUGES
from vlrl.tracking.prometheus.exporter import COUNTS, metric_name

OWN = {"run": "a"}

RAISED: dict[str, list[tuple[str, dict[str, str], str]]] = {
    "VlrlProcessDown": [("up", {"job": "vlrl", "role": "rank"}, "1 1 0x40")],
    "VlrlNoStep": [
        ("vlrl_last_step_timestamp_seconds", {}, "0x40"),
        ("vlrl_time_s_step", {}, "10x40"),
        ("vlrl_step", {}, "3x40"),
    ],
    "VlrlEnvironmentsFail": [("vlrl_failures_total", {"kind": "env_hung"}, "0x30 2x10")],
    "VlrlRewardsFail": [("vlrl_failures_total", {"kind": "reward"}, "0x30 2x10")],
    "VlrlProcessReplaced": [("vlrl_failures_total", {"kind": "replaced_engines"}, "0x30 1x10")],
    "VlrlTrainerRestarted": [("vlrl_start_timestamp_seconds", {}, "0x30 60x10")],
    "VlrlDiskNearlyFull": [
        ("vlrl_node_tmp_disk_used", {"node": "n"}, "0.97x40"),
        ("vlrl_node_tmp_disk_free_gib", {"node": "n"}, "3x40"),
    ],
    "VlrlMemoryNearlyFull": [("vlrl_node_memory_used", {"node": "n"}, "0.95x40")],
    "VlrlSharedMemoryNearlyFull": [("vlrl_node_shared_memory_used", {"node": "n"}, "0.95x40")],
    "VlrlNodeLost": [("vlrl_node_alive", {"node": "n"}, "0x40")],
    "VlrlNothingToLearn": [("vlrl_reward_zero_variance_groups", {}, "1x40")],
    "VlrlGradientNotFinite": [("vlrl_optim_skipped_fraction", {}, "0.5x40")],
}
"""By alert: series that raise it within 36 minutes, a value a minute."""

HEALTHY: list[tuple[str, dict[str, str], str]] = [
    ("up", {"job": "vlrl", "role": "rank"}, "1x40"),
    ("vlrl_last_step_timestamp_seconds", {}, "0+60x40"),
    ("vlrl_time_s_step", {}, "60x40"),
    ("vlrl_step", {}, "0+1x40"),
    *(("vlrl_failures_total", {"kind": kind}, "7x40") for kind in COUNTS),
    ("vlrl_start_timestamp_seconds", {}, "5x40"),
    ("vlrl_node_run_disk_used", {"node": "n"}, "0.97x40"),
    ("vlrl_node_run_disk_free_gib", {"node": "n"}, "900x40"),
    ("vlrl_node_tmp_disk_used", {"node": "n"}, "0.5x40"),
    ("vlrl_node_tmp_disk_free_gib", {"node": "n"}, "3x40"),
    ("vlrl_node_memory_used", {"node": "n"}, "0.8x40"),
    ("vlrl_node_shared_memory_used", {"node": "n"}, "0.8x40"),
    ("vlrl_node_alive", {"node": "n"}, "1x40"),
    ("vlrl_reward_zero_variance_groups", {}, "1x10 0.9x30"),
    ("vlrl_optim_skipped_fraction", {}, "0x40"),
]


def promtool(*arguments: object) -> str:
    assert shutil.which("promtool"), "Debian's prometheus is missing: make dev"
    done = subprocess.run(["promtool", *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def rules() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = yaml.safe_load(RULES.read_text())["groups"][0]["rules"]
    return found


def firing(folder: Path, series: list[tuple[str, dict[str, str], str]]) -> set[str]:
    """Alerts that series raise, by asking promtool of each whether it does not."""
    found = set()
    given = [
        {
            "series": name
            + json.dumps(OWN | labels).replace('": "', '="').replace('{"', "{").replace(', "', ","),
            "values": values,
        }
        for name, labels, values in series
    ]
    for rule in rules():
        silent = [{"eval_time": "36m", "alertname": rule["alert"], "exp_alerts": []}]
        test = {
            "rule_files": [str(RULES)],
            "tests": [{"interval": "1m", "input_series": given, "alert_rule_test": silent}],
        }
        (folder / "test.yml").write_text(yaml.safe_dump(test))
        done = subprocess.run(
            ["promtool", "test", "rules", str(folder / "test.yml")], capture_output=True, text=True
        )
        if done.returncode:
            assert "exp:" in done.stdout + done.stderr, done.stdout + done.stderr
            found.add(rule["alert"])
    return found


def test_promtool_finds_no_fault() -> None:
    promtool("check", "rules", RULES)
    promtool("check", "config", "--syntax-only", RULES.with_name("prometheus.yml"))


@pytest.mark.parametrize("alert", RAISED)
def test_each_alert_is_raised_by_what_it_is_for_and_by_nothing_else(tmp_path: Path, alert: str) -> None:
    assert firing(tmp_path, RAISED[alert]) == {alert}


def test_nothing_is_raised_of_a_healthy_run(tmp_path: Path) -> None:
    assert firing(tmp_path, HEALTHY) == set()
    assert set(RAISED) == {rule["alert"] for rule in rules()}


def test_the_texts_name_the_run() -> None:
    for rule in rules():
        assert "$labels.run" in rule["annotations"]["summary"], rule["alert"]


def test_the_dashboard_asks_for_what_there_is() -> None:
    """vLLM's own names are found in a run: tests/e2e/test_monitoring.py."""
    known = {metric_name(name) for name in METRICS}
    known |= {f"vlrl_node_{re.sub('^gpu<n>_', 'gpu_', gauge)}" for gauge in NODE_GAUGES}
    known |= {
        "vlrl_step",
        "vlrl_num_steps",
        "vlrl_last_step_timestamp_seconds",
        "vlrl_start_timestamp_seconds",
    }
    known |= {"vlrl_phase", "vlrl_failures_total", "vlrl_events_total", "vlrl_time_s_"}
    queries = [*dashboard_queries(), *((rule["alert"], rule["expr"]) for rule in rules())]
    for title, expression in queries:
        asked = set(re.findall(r"\bvlrl_\w+", expression))
        assert asked <= known, f"{title} asks for {asked - known}"


def test_the_dashboard_is_one_that_grafana_takes() -> None:
    board = json.loads(DASHBOARD.read_text())
    assert board["title"] == "vlrl" and board["schemaVersion"] >= 36
    ids = [panel["id"] for panel in board["panels"]]
    assert len(set(ids)) == len(ids)
    places = set()
    for panel in board["panels"]:
        at = panel["gridPos"]
        assert at["x"] + at["w"] <= 24 and (at["x"], at["y"]) not in places
        places.add((at["x"], at["y"]))
        for target in panel.get("targets", ()):
            assert target["datasource"]["uid"] == "${datasource}" and target["legendFormat"]
