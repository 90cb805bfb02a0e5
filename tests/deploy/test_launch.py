"""deploy/slurm.sh and the task of deploy/skypilot.yaml start Ray on two nodes, run, pass signals on and end.

Both nodes are this machine. SLURM's programs are stand-ins (tests/helpers/slurm_programs.py); Ray is real.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
import slurm_programs
import yaml
from slurm_programs import JOB, kill, processes_with

from vlrl.run.checkpoint import latest_checkpoint

ROOT = Path(__file__).parents[2]
START_S, END_S = 600.0, 180.0  # the machine may have much else to do

# A driver that uses both nodes, and ends on SIGTERM with a checkpoint as vlrl does.
DRIVER = """#!{python}
import os, pathlib, signal, sys, time
import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy as On

@ray.remote
def node():
    return os.environ.get("SLURMD_NODENAME") or os.environ["SKYPILOT_NODE_RANK"]

def stop(number, frame):
    pathlib.Path("runs/digit-sum-3b/checkpoints/step_000003").mkdir(parents=True)
    print("driver: saved", flush=True)
    os._exit(130)

ray.init(address="auto", log_to_driver=False)
signal.signal(signal.SIGTERM, stop)
names = ray.get([node.options(scheduling_strategy=On(n["NodeID"], soft=False)).remote() for n in ray.nodes()])
print("driver:", *sys.argv[1:], "on", *sorted(names), flush=True)
if pathlib.Path("driver ends").exists():
    sys.exit(0)
time.sleep(1000)
"""
ARGUMENTS = ("train", "configs/digit_sum_qwen2_5_vl_3b.yaml")

pytestmark = pytest.mark.timeout(2400)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A checkout whose environment has a driver and SLURM's programs for vlrl and SLURM's own."""
    for name in ("deploy", "configs"):
        (tmp_path / name).symlink_to(ROOT / name)
    programs = tmp_path / ".venv" / "bin"
    programs.mkdir(parents=True)
    for name in ("sbatch", "srun", "scontrol"):
        # A link to the file would lose the name under which it is called.
        (programs / name).write_text(f"#!{sys.executable}\n{Path(slurm_programs.__file__).read_text()}")
    (programs / "vlrl").write_text(DRIVER.format(python=sys.executable))
    for program in programs.iterdir():
        program.chmod(0o755)
    path = f"{programs}:{Path(sys.executable).parent}"
    (programs / "activate").write_text(f"PATH={path}:$PATH\n")
    return tmp_path


@pytest.fixture
def free_port() -> int:
    """A free port among those that slurm.sh derives from the job's number."""
    for port in range(20000 + os.getpid() % 9000, 30000):
        with socket.socket() as probe:
            try:
                probe.bind(("", port))
            except OSError:
                continue
            return port
    raise AssertionError("no port is free")


class Job:
    """What `sbatch deploy/slurm.sh` started."""

    def __init__(self, folder: Path, port: int, *arguments: str, env: Mapping[str, str]) -> None:
        self.folder, self.id = folder, str(port - 20000 + 70000)
        self.log = folder / f"vlrl-{self.id}.log"
        environment = {
            **os.environ,
            **{JOB: self.id, "SLURM_FAKE": str(folder), "OBJECT_STORE_GIB": "1", "PYTHONPATH": python_path()},
            "PATH": f"{folder / '.venv' / 'bin'}:{os.environ['PATH']}",
            **env,
        }
        self.process = subprocess.Popen(
            ["sbatch", "deploy/slurm.sh", *arguments], cwd=folder, env=environment
        )

    def wait_for(self, condition: Callable[[str], bool]) -> str:
        return wait_for(lambda: self.text(), condition, self.process)

    def text(self) -> str:
        return self.log.read_text() if self.log.exists() else ""

    def signal(self, number: int) -> None:
        """`scancel --batch --signal=…` does this, and SLURM itself before the time limit."""
        os.kill(int((self.folder / "shell.pid").read_text()), number)

    def end(self) -> int:
        return self.process.wait(END_S)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        kill(processes_with(JOB, self.id))
        shutil.rmtree(f"/tmp/ray_{self.id}", ignore_errors=True)


def python_path() -> str:
    """This checkout's vlrl for programs that are started in another folder."""
    return f"{ROOT}{os.pathsep}{os.environ['PYTHONPATH']}"


def wait_for(
    text: Callable[[], str], condition: Callable[[str], bool], process: subprocess.Popen[bytes]
) -> str:
    until = time.monotonic() + START_S
    while not condition(text()):
        assert process.poll() is None and time.monotonic() < until, text()
        time.sleep(0.1)
    return text()


Submit = Callable[..., Job]


@pytest.fixture
def submit(folder: Path, free_port: int) -> Iterator[Submit]:
    jobs: list[Job] = []

    def start(*arguments: str, env: Mapping[str, str] = MappingProxyType({})) -> Job:
        jobs.append(Job(folder, free_port, *arguments, env=env))
        return jobs[-1]

    yield start
    for job in jobs:
        job.close()


@pytest.mark.slow
def test_a_slurm_job_uses_all_nodes_saves_and_is_queued_again(submit: Submit, folder: Path) -> None:
    job = submit(*ARGUMENTS, env={"SLURM_FAKE_ONCE": "1"})
    text = job.wait_for(lambda text: "driver: train" in text)
    assert "2 Ray nodes:" in text
    assert "driver: train configs/digit_sum_qwen2_5_vl_3b.yaml ray.address=auto on node1 node2" in text
    job.signal(signal.SIGUSR1)
    assert job.end() == 130, job.text()
    assert "driver: saved" in job.text()
    assert (folder / "requeue").exists()
    assert (folder / "left").read_text() == "", "processes were left behind"


def test_a_wrong_config_ends_a_slurm_job_with_its_nodes(submit: Submit, folder: Path) -> None:
    job = submit(*ARGUMENTS, "trainer.num_rank=2")
    assert job.end() == 2, job.text()
    assert "trainer.num_rank" in job.text() and "did you mean" in job.text().lower()
    assert (folder / "left").read_text() == ""


SKYPILOT_PORT = "6390"


@pytest.mark.slow
def test_the_task_of_skypilot_uses_all_nodes_and_ends_with_the_driver(folder: Path, free_port: int) -> None:
    task = yaml.safe_load((ROOT / "deploy" / "skypilot.yaml").read_text())
    assert task["run"].count(f":{SKYPILOT_PORT}") == 1
    (folder / "driver ends").touch()
    mark = f"{free_port}.{os.getpid()}"
    address = subprocess.run(["hostname", "-I"], capture_output=True, text=True, check=True).stdout.split()[0]
    environment = {
        **os.environ,
        **task["envs"],
        **{"VLRL_ARGUMENTS": " ".join(ARGUMENTS), "RAY_AUTH_TOKEN": "0123456789abcdef" * 2, JOB: mark},
        **{"SKYPILOT_NUM_NODES": "2", "SKYPILOT_NODE_IPS": f"{address}\n10.0.0.2", "OBJECT_STORE_GIB": "1"},
        **{"RAY_TEMP_DIR": f"/tmp/ray_{mark}", "PYTHONPATH": python_path()},
    }
    script = task["run"].replace(f":{SKYPILOT_PORT}", f":{free_port}")
    nodes = []
    try:
        for rank in ("0", "1"):
            output = (folder / f"node{rank}.log").open("wb")
            env = {**environment, "SKYPILOT_NODE_RANK": rank}
            nodes.append(
                subprocess.Popen(["bash", "-c", script], cwd=folder, env=env, stdout=output, stderr=output)
            )
        head, worker = (node.wait(START_S) for node in nodes)
        logs = [(folder / f"node{rank}.log").read_text() for rank in (0, 1)]
        assert (head, worker) == (0, 0), logs
        assert "ray.address=auto on 0 1" in logs[0]
        assert processes_with(JOB, mark) == {}, "processes were left behind"
    finally:
        kill(processes_with(JOB, mark))
        shutil.rmtree(environment["RAY_TEMP_DIR"], ignore_errors=True)


@pytest.fixture
def run_file(folder: Path, tiny_model: Path) -> Path:
    """A config of a run that would take an hour."""
    (folder / "reward.py").write_text(
        "def score(completion, answer):\n    return float(len(completion) % 2)\n"
    )
    tree: dict[str, Any] = {
        "run": {"name": "a"},
        "model": {"path": str(tiny_model)},
        "data": {"train": {"name": "digit_sum", "options": {"num_rows": 64}}},
        "rewards": [{"name": "./reward.py:score"}],
        "num_steps": 5000,
        "rollout": {"prompts_per_step": 2, "group_size": 2, "max_tokens": 8},
        "generator": {"max_model_len": 128, "max_num_seqs": 8, "cpus": 0.5},
        "trainer": {"cpus_per_rank": 0.5},
        "parity": {"num_samples": 1},
        "checkpoint": {"every": 0},
        "logging": {"tensorboard": False},
    }
    path = folder / "run.yaml"
    path.write_text(yaml.safe_dump(tree))
    return path


@pytest.mark.slow
def test_vlrl_itself_saves_is_queued_again_and_resumes(submit: Submit, folder: Path, run_file: Path) -> None:
    (folder / ".venv" / "bin" / "vlrl").unlink()  # the next one on the path is the real one
    run = folder / "runs" / "a"

    def num_steps(_: str) -> int:
        metrics = run / "metrics.jsonl"
        return metrics.read_text().count("\n") if metrics.exists() else 0

    job = submit("train", str(run_file))
    job.wait_for(lambda text: num_steps(text) >= 2)
    job.signal(signal.SIGUSR1)
    text = job.wait_for(lambda text: text.count("+ vlrl train") == 2)
    saved = int(re.findall(r"stopped after step (\d+) of 5000, saved", text)[0])
    job.wait_for(lambda text: num_steps(text) >= saved + 2)
    job.signal(signal.SIGTERM)
    assert job.end() == 130, job.text()
    assert (folder / "left").read_text() == "", "processes were left behind"
    last = latest_checkpoint(run)[1].next_step
    assert last >= saved + 2
    steps = [json.loads(line)["step"] for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert steps == list(range(last)), "a step is missing or was done twice"
