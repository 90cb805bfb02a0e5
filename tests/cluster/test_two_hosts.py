"""A run over two hosts, which are network namespaces with a slow link: `make cluster-test`. Needs root."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from two_hosts import TwoHosts, num_nodes, two_hosts, wait_for

from vlrl.tracking.metrics import repeatable

ROOT = Path(__file__).parent.parent.parent
VLRL = str(Path(sys.executable).parent / "vlrl")
NUM_STEPS = 20
# One core a process, on one host and on two: how a matmul is split over threads shows in its last bits.
SIZES = (
    *("trainer.num_ranks=2", "trainer.cpus_per_rank=0.45", "generator.num_replicas=2", "generator.cpus=0.45"),
    "rollout.cpus_per_worker=0.05",  # on two hosts a worker on each; on one the driver plays
    *("data.eval=null", "eval={}", "checkpoint.every=8", "logging.tensorboard=false"),
)

pytestmark = [pytest.mark.slow(together=True), pytest.mark.timeout(1500)]


def train(
    model: Path, folder: Path, *options: str, inside: Sequence[str] = (), num_steps: int = NUM_STEPS
) -> list[str]:
    """The command line of the quickstart's first steps."""
    paths = (f"model.path={model}", f"run.dir={folder}", "run.name=run", f"num_steps={num_steps}")
    return [*inside, VLRL, "train", str(ROOT / "configs/quickstart.yaml"), *paths, *SIZES, *options]


def metrics(folder: Path) -> list[dict[str, Any]]:
    """Every step's numbers but those that a clock made."""
    lines = (folder / "run" / "metrics.jsonl").read_text().splitlines()
    steps = [json.loads(line) for line in lines]
    return [
        {name: value for name, value in repeatable(step).items() if name != "failures/replaced_workers"}
        for step in steps
    ]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny model that sometimes answers right."""
    from vlrl.envs.visual.questions.digit_sum import DigitSum
    from vlrl.model.tiny import build_tiny_qwen2_5_vl

    folder = tmp_path_factory.mktemp("model")
    build_tiny_qwen2_5_vl(folder / "init", DigitSum().corpus(), seed=0)
    options = [f"model.path={folder / 'init'}", f"run.dir={folder}", "run.name=sft", "num_steps=150"]
    command = [VLRL, "sft", str(ROOT / "configs/quickstart_sft.yaml"), *options]
    subprocess.run(command, check=True, cwd=ROOT)
    return folder / "sft" / "model"


@pytest.fixture(scope="module")
def on_one_host(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the undisturbed run on this machine."""
    folder = tmp_path_factory.mktemp("one")
    subprocess.run(train(model, folder), check=True, cwd=ROOT)
    return folder


@pytest.fixture
def hosts() -> Iterator[TwoHosts]:
    """Two hosts with a core each, as Ray counts."""
    assert os.geteuid() == 0, "network namespaces need root"
    with two_hosts() as both:
        both.start_ray(sys.executable, num_cpus=1)
        wait_for(lambda: num_nodes(both, sys.executable) == 2, 120, "both nodes in the cluster")
        yield both


def inside_of(hosts: TwoHosts) -> list[str]:
    return hosts.command(0, "taskset", "-c", "0")


def test_two_hosts_take_the_same_steps_as_one(
    hosts: TwoHosts, model: Path, on_one_host: Path, tmp_path: Path
) -> None:
    command = train(model, tmp_path, f"ray.address={hosts.address}", inside=inside_of(hosts))
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    output = done.stdout + done.stderr
    assert "10.77.0.1: rank 0, engine 0, worker 0" in output
    assert "10.77.0.2: rank 1, engine 1, worker 1" in output
    found, expected = metrics(tmp_path), metrics(on_one_host)
    assert len(found) == NUM_STEPS
    assert any(step["optim/grad_norm"] > 0 for step in found)
    assert found == expected


def test_a_host_that_is_cut_off_is_replaced_and_nothing_counts_twice(
    hosts: TwoHosts, model: Path, on_one_host: Path, tmp_path: Path
) -> None:
    command = train(model, tmp_path, f"ray.address={hosts.address}", inside=inside_of(hosts))
    log = tmp_path / "log"
    with log.open("w") as file:
        run = subprocess.Popen(command, cwd=ROOT, stdout=file, stderr=subprocess.STDOUT, text=True)
    try:
        steps = tmp_path / "run" / "metrics.jsonl"
        wait_for(lambda: steps.exists() and len(steps.read_text().splitlines()) > 9, 600, "ten steps")
        hosts.cut(1)
        wait_for(lambda: "for nodes:" in log.read_text(), 300, "the run noticing that a host is gone")
        hosts.start_node(0, sys.executable, num_cpus=1)
        assert run.wait(timeout=600) == 0, log.read_text()
    finally:
        run.kill()
        run.wait()
    assert metrics(tmp_path) == metrics(on_one_host)
