"""A run as those see it who watch it: a real Prometheus server, and whoever reads its events."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

import psutil
import pytest
import yaml
from prometheus_server import PrometheusServer, dashboard_queries, prometheus, rule_queries
from sessions import Session

from vlrl.tracking.events import EVENTS_FILE
from vlrl.tracking.prometheus.targets import TARGETS_FILE
from vlrl.tracking.run_log import LOG_FILE

ENV = '''
import time
from pathlib import Path
from vlrl.envs.visual.games.frozen_lake import FrozenLake

class Lake(FrozenLake):
    """Hangs once there is a file that says so, in each attempt of one episode."""

    def step(self, action):
        try:
            (Path(__file__).parent / "hang").unlink()
        except FileNotFoundError:
            return super().step(action)
        time.sleep(60)
'''
PROCESSES = {("driver", "0"), ("rank", "0"), ("rank", "1"), ("engine", "0"), ("worker", "0")}
SILENCE_S = 12.0
NO_DATA = {"GPUs", "Alerts", "Policy", "Prefix cache hits"}
"""Panels that may be empty: without a GPU, alert, trained token, or a prompt that comes again."""


@pytest.fixture
def session(tmp_path: Path, tiny_model: Path) -> Iterator[Session]:
    (tmp_path / "lake.py").write_text(ENV)
    rows = {"env": "./lake.py:Lake", "options": {"image_size": 112}, "tasks": [{}], "num_rows": 64}
    tree = {
        "run": {"name": "watched"},
        "model": {"path": str(tiny_model)},
        "processor": {"min_pixels": 28 * 28, "max_pixels": 56 * 56},
        "rewards": [{"name": "episode_return"}],
        "num_steps": 100_000,
        "env": {"step_timeout_s": 2.0},
        "rollout": {
            **{"prompts_per_step": 2, "group_size": 2, "max_tokens": 6},
            **{"num_workers": 1, "cpus_per_worker": 0.001},
        },
        "episodes": {"max_turns": 2},
        "generator": {"max_model_len": 1024, "max_num_batched_tokens": 1024},
        "trainer": {"num_ranks": 2, "max_tokens_per_micro_batch": 1024},
        "data": {"train": {"name": "env", "options": rows}, "eval": []},
        "checkpoint": {"every": 0},
        "logging": {
            **{"tensorboard": False, "prometheus_port": 0, "prometheus_targets": str(tmp_path / "targets")},
            **{"silence_s": SILENCE_S},
        },
    }
    (tmp_path / "run.yaml").write_text(yaml.safe_dump(tree))
    started = Session(tmp_path, "train", "run.yaml")
    yield started
    started.kill()


def pid_of(session: Session, name: str) -> int:
    """The process of the first actor of a class."""
    found = [p for p in session.processes() if name in "".join(psutil.Process(p).cmdline())]
    return sorted(found)[0]


def told(run_dir: Path, event: str) -> list[str]:
    file = run_dir / EVENTS_FILE
    lines = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    return [line["text"] for line in lines if line["event"] == event]


def up(server: PrometheusServer) -> set[tuple[str, str]]:
    return {(s["metric"]["role"], s["metric"]["number"]) for s in server.query('up{job="vlrl"} == 1')}


def answered(server: PrometheusServer, query: str) -> list[dict[str, Any]]:
    try:
        return server.query(query)
    except HTTPError as error:
        raise AssertionError(f"{query}: {error.read().decode()}") from error


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_run_is_watched(session: Session, tmp_path: Path) -> None:
    run_dir = tmp_path / "runs" / "watched"
    metrics = run_dir / "metrics.jsonl"
    session.wait_until(lambda: metrics.exists() and metrics.read_text().count("\n") > 2)
    with prometheus(tmp_path, tmp_path / "targets" / "*.json") as server:
        server.until(lambda: up(server) == PROCESSES)
        server.until(lambda: server.query("vlrl_node_cpu_load"))
        server.until(lambda: answered(server, "rate(vllm:generation_tokens_total[30s]) > 0"))
        empty = {title for title, query in dashboard_queries() if not answered(server, query)}
        assert empty <= NO_DATA
        for _, query in rule_queries():
            answered(server, query)
        expected = {"VlrlNothingToLearn"} | {"VlrlMemoryNearlyFull", "VlrlDiskNearlyFull"}  # of this machine
        assert set(server.alerts()) <= expected

        (tmp_path / "hang").touch()
        server.until(lambda: server.alerts().get("VlrlEnvironmentsFail", {}).get("kind") == "env_hung")

        num_silent = len(told(run_dir, "silence"))  # at the start, on a busy machine
        rank = pid_of(session, "TrainerRank")
        os.kill(rank, signal.SIGSTOP)
        server.until(lambda: server.alerts().get("VlrlProcessDown", {}).get("role") == "rank")
        session.wait_until(lambda: len(told(run_dir, "silence")) > num_silent, 60)
        text = told(run_dir, "silence")[-1]
        assert "the driver waits for the ranks" in text
        assert f"process {rank} is stopped (state T) and does not answer" in text
        *_, file = sorted((run_dir / "stacks").iterdir())
        stacks = file.read_text()
        assert (
            "=== rank 0" in stacks and "lake.py" in stacks
        )  # the environment that hangs has a thread of its own
        os.kill(rank, signal.SIGCONT)
        session.wait_until(lambda: len(told(run_dir, "silence_over")) == num_silent + 1, 60)
        server.until(lambda: up(server) == PROCESSES)

        engine = pid_of(session, "GeneratorActor")
        os.kill(engine, signal.SIGSTOP)
        session.wait_until(lambda: len(told(run_dir, "silence")) == num_silent + 2, 60)
        assert f"process {engine} is stopped (state T) and does not answer" in told(run_dir, "silence")[-1]
        os.kill(engine, signal.SIGCONT)
        session.wait_until(lambda: len(told(run_dir, "silence_over")) == num_silent + 2, 60)

    session.press_ctrl_c()
    session.end()
    assert not (run_dir / TARGETS_FILE).exists() and not list((tmp_path / "targets").iterdir())
    said = [json.loads(line) for line in (run_dir / LOG_FILE).read_text().splitlines()]
    assert {"driver", "rank 0", "rank 1", "engine 0"} <= {line["process"] for line in said}
    assert {"silence", "silence_over"} <= {line["event"] for line in said}
    assert all(line["run"] == "watched" and line["node"] for line in said)
    assert not told(run_dir, "unwatched") and not told(run_dir, "sink_failed")
