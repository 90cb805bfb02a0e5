"""`vlrl serve` answers a greedy request with the very tokens of `vlrl eval`, images and all."""

from __future__ import annotations

import base64
import io
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import httpx2
import pytest
from builders import make_config
from classifier_server import await_health
from PIL import Image
from tiny_families import build_qwen2_5_vl

from vlrl.config import Config
from vlrl.config.options import EvalEndpoint
from vlrl.engine.api.options import TOKEN_VARIABLE
from vlrl.envs.visual.questions.digit_sum import DigitSum
from vlrl.evaluate import evaluate_model
from vlrl.evaluation.result import Evaluation
from vlrl.run.resume import config_text

pytestmark = pytest.mark.slow(together=True)

NUM_ROWS = 8
START_LIMIT_S = 900.0
TOKEN = "a token for this server"


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Config:
    """A config whose images are resized: 56 pixels become 84."""
    root = tmp_path_factory.mktemp("served")
    rows = {"name": "digit_sum", "options": {"split": "heldout", "num_rows": NUM_ROWS}}
    return make_config(
        build_qwen2_5_vl(root / "init"),
        data={"train": {"name": "digit_sum"}, "eval": rows},
        processor={"min_pixels": 84 * 84},
        run={"dir": str(root), "name": "run"},
    )


@pytest.fixture(scope="module")
def evaluated(config: Config) -> Evaluation:
    return evaluate_model(config)


@pytest.fixture(scope="module")
def server(config: Config, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server of the run's folder, from the command line."""
    run = config.run_dir
    run.mkdir(parents=True, exist_ok=True)
    (run / "config.yaml").write_text(config_text(config))
    (run / "metrics.jsonl").touch()
    (run / "model").symlink_to(config.model.path)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    log = tmp_path_factory.mktemp("log") / "serve.log"
    command = [sys.executable, "-c", "from vlrl.cli.main import main; main()", "serve", str(run)]
    with log.open("wb") as out:
        process = subprocess.Popen(
            [*command, "--port", str(port), "--max-images", "2"],
            stdout=out,
            stderr=out,
            start_new_session=True,
            env={**os.environ, TOKEN_VARIABLE: TOKEN},
        )
    try:
        await_health(f"http://127.0.0.1:{port}", process, log, START_LIMIT_S)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(30)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def data_url(image: Any) -> str:
    file = io.BytesIO()
    (image if isinstance(image, Image.Image) else Image.fromarray(image)).save(file, "PNG")
    return f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"


def asked(row: dict[str, Any]) -> dict[str, Any]:
    content = [
        {"type": "image_url", "image_url": {"url": data_url(part["image"])}} if "image" in part else part
        for part in row["messages"][0]["content"]
    ]
    return {
        "model": "run",
        "temperature": 0,
        "return_token_ids": True,
        "messages": [{"role": "user", "content": content}],
    }


def test_greedy_answers_are_those_of_eval(evaluated: Evaluation, server: str) -> None:
    rows = DigitSum("heldout", num_rows=NUM_ROWS)
    assert len(evaluated.greedy) == NUM_ROWS
    headers = {"Authorization": f"Bearer {TOKEN}"}
    for number, group in enumerate(evaluated.greedy):
        row, trajectory = rows[number], group.trajectories[0]
        assert trajectory.sample.id == row["id"]
        answer = httpx2.post(
            f"{server}/chat/completions", json=asked(row), headers=headers, timeout=120, trust_env=False
        )
        assert answer.status_code == 200, answer.text
        [ledger] = trajectory.ledgers
        [choice] = answer.json()["choices"]
        assert answer.headers["x-vlrl-image-sizes"] == "84x84,84x84"
        assert choice["token_ids"] == ledger.token_ids[ledger.loss_mask].tolist()
        assert answer.json()["prompt_token_ids"] == ledger.token_ids[~ledger.loss_mask].tolist()
        assert choice["message"]["content"] == trajectory.completion


def test_eval_of_an_endpoint_finds_what_the_engine_finds(
    config: Config, evaluated: Evaluation, server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`eval.endpoint` at vLLM's own server: the same answers to the letter, so one table may have both."""
    monkeypatch.setenv("SERVED_KEY", TOKEN)
    asks = EvalEndpoint(base_url=server, model="run", api_key_env="SERVED_KEY")
    at_it = config.model_copy(update={"eval": config.eval.model_copy(update={"endpoint": asks})})
    found = evaluate_model(at_it)
    texts = [[group.trajectories[0].completion for group in each.greedy] for each in (found, evaluated)]
    assert texts[0] == texts[1]
    assert found.accuracy_greedy == evaluated.accuracy_greedy


def test_limits_hold(server: str) -> None:
    body = asked(DigitSum("heldout", num_rows=1)[0])
    refused = httpx2.post(f"{server}/chat/completions", json=body, trust_env=False)
    assert refused.status_code == 401
    body["messages"][0]["content"] += body["messages"][0]["content"][:1]
    headers = {"Authorization": f"Bearer {TOKEN}"}
    many = httpx2.post(f"{server}/chat/completions", json=body, headers=headers, trust_env=False)
    assert many.status_code == 400 and "--max-images" in many.json()["error"]["message"]
