"""Engines that are vLLM servers in processes of their own: whole runs, dead servers, and wrong ones."""

from __future__ import annotations

import io
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import yaml
from builders import make_config
from rich.console import Console

from vlrl import grpo
from vlrl.config import Config
from vlrl.errors import ConfigError
from vlrl.tracking.console import TrainConsole

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

TOKEN = "a secret of at least sixteen characters"
NUM_STEPS = 3
START_S = 240.0


def config_of(model: Path, tmp_path: Path, **sections: Any) -> Config:
    return make_config(
        model,
        run={"name": "run", "dir": str(tmp_path)},
        data={
            "train": {"name": "digit_sum"},
            "eval": {"name": "digit_sum", "options": {"split": "heldout"}},
        },
        num_steps=NUM_STEPS,
        algorithm={"kl_coef": 0.01},  # something is learnt even where all rewards are equal
        optim={"lr": 3e-3},
        eval={"num_samples": 2},
        logging={"tensorboard": False},
        **sections,
    )


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


@contextmanager
def serving(config: Config, port: int, log: Path, *overrides: str) -> Iterator[subprocess.Popen[bytes]]:
    """`vlrl engine`, answering."""
    path = log.with_suffix(".yaml")
    path.write_text(yaml.safe_dump(config.model_dump(mode="json", exclude_unset=True)))
    command = [Path(sys.executable).parent / "vlrl", "engine", path, *overrides, "--port", str(port)]
    environment = {**os.environ, "VLRL_SERVE_TOKEN": TOKEN}
    with log.open("ab") as output:
        server = subprocess.Popen(
            command,
            stdout=output,
            stderr=output,
            stdin=subprocess.DEVNULL,
            env=environment,
            start_new_session=True,
        )
    try:
        end = time.monotonic() + START_S
        while not answers(port):
            assert server.poll() is None and time.monotonic() < end, log.read_text()
            time.sleep(0.5)
        yield server
    finally:
        server.send_signal(signal.SIGINT)
        try:
            server.wait(30)
        finally:
            kill_all(server)


def kill_all(server: subprocess.Popen[bytes]) -> None:
    """The server and vLLM's processes, which outlive one that is killed."""
    with suppress(ProcessLookupError):
        os.killpg(server.pid, signal.SIGKILL)
    server.wait()


def answers(port: int) -> bool:
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/health", headers={"Authorization": f"Bearer {TOKEN}"}
    )
    try:
        with urllib.request.urlopen(request, timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def trained(config: Config) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The summary, and the metrics of each step."""
    with TrainConsole("test", NUM_STEPS, console=Console(file=io.StringIO())) as console:
        summary = grpo.train(config, console)
    lines = (config.run_dir / "metrics.jsonl").read_text().splitlines()
    return summary, [json.loads(line) for line in lines]


@pytest.mark.parametrize(("transport", "mode"), [("shared_memory", "batch"), ("broadcast", "continuous")])
def test_a_run_on_a_server_keeps_parity(
    tiny_model: Path,
    local_ray: None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    transport: str,
    mode: str,
) -> None:
    """A second run finds the first one's weights in the server, and begins with its own all the same."""
    monkeypatch.setenv("VLRL_SERVE_TOKEN", TOKEN)
    port = free_port()
    sections: dict[str, Any] = {
        "rollout": {"num_workers": 1 if mode == "continuous" else 0},
        "generator": {"mode": mode, "servers": [f"http://127.0.0.1:{port}"]},
        "weights": {"transport": transport, "bucket_mib": 0.5, "probe_every": 1, "checksums": True},
    }
    with serving(config_of(tiny_model, tmp_path, **sections), port, tmp_path / "server.log"):
        for number in range(2 if mode == "batch" else 1):
            config = config_of(tiny_model, tmp_path / str(number), **sections)
            summary, lines = trained(config)
            assert [line["step"] for line in lines] == list(range(NUM_STEPS))
            assert all(line["parity/max_abs_logprob_diff"] < 1e-4 for line in lines)
            assert all(line["failures/replaced_engines"] == 0 for line in lines)
            assert summary["num_steps"] == NUM_STEPS


def test_a_run_goes_on_when_a_dead_server_is_started_again(
    tiny_model: Path, local_ray: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next one is given the weights of the moment, and what was lost is generated again."""
    monkeypatch.setenv("VLRL_SERVE_TOKEN", TOKEN)
    port, log = free_port(), tmp_path / "server.log"
    config = config_of(
        tiny_model,
        tmp_path,
        generator={"servers": [f"http://127.0.0.1:{port}"]},
        weights={"probe_every": 1},
        ray={"start_timeout_s": START_S},
    )
    metrics = config.run_dir / "metrics.jsonl"
    with ExitStack() as servers, ThreadPoolExecutor(1) as beside:
        first = servers.enter_context(serving(config, port, log))

        def replace_server() -> None:
            while not metrics.is_file() or not metrics.read_text():
                time.sleep(0.05)
            kill_all(first)
            servers.enter_context(serving(config, port, log))

        replacing = beside.submit(replace_server)
        _, lines = trained(config)
        replacing.result()
    assert [line["step"] for line in lines] == list(range(NUM_STEPS))
    assert sum(line["failures/replaced_engines"] for line in lines) == 1
    assert all(line["parity/max_abs_logprob_diff"] < 1e-4 for line in lines)


def test_a_server_of_another_dtype_is_refused(
    tiny_model: Path, local_ray: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VLRL_SERVE_TOKEN", TOKEN)
    port = free_port()
    config = config_of(tiny_model, tmp_path, generator={"servers": [f"http://127.0.0.1:{port}"]})
    with (
        serving(config, port, tmp_path / "server.log", "model.dtype=bfloat16"),
        pytest.raises(ConfigError, match=r"dtype is 'torch\.bfloat16', the run's 'float32'"),
    ):
        trained(config)
