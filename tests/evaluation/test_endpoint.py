"""A model behind an OpenAI-compatible server is evaluated over real HTTP, faults and all."""

from __future__ import annotations

import base64
import io
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from builders import make_config
from judge_server import JudgeServer, Reply, Seen
from PIL import Image

from vlrl.chat_client.client import ChatFailure
from vlrl.config import Config
from vlrl.errors import ConfigError
from vlrl.evaluate import evaluate_model
from vlrl.tracking.rollouts.read import read_rollouts

NUM_ROWS = 6


def right(seen: Seen) -> Reply:
    """The number that the question names, or 0 if it is odd; the usual form."""
    number = int(seen.text)
    return Reply(f"<think>é.</think><answer>{0 if number % 2 else number}</answer>")


@pytest.fixture
def server() -> Iterator[JudgeServer]:
    made = JudgeServer()
    made.answer = right
    with made.running():
        yield made


@pytest.fixture
def configured(tiny_model: Path, tmp_path: Path, server: JudgeServer) -> Any:
    Image.new("RGB", (56, 84), (200, 10, 10)).save(tmp_path / "red.png")
    rows = [
        {"id": f"r{n}", "problem": f"{n}", "image": str(tmp_path / "red.png"), "answer": str(n)}
        for n in range(NUM_ROWS)
    ]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

    def config(endpoint: dict[str, Any] | None = None, **options: Any) -> Config:
        given = {"base_url": server.url, "model": "closed", "backoff_s": 0.01, **(endpoint or {})}
        return make_config(
            tiny_model,
            data={"train": str(tmp_path / "rows.jsonl"), "eval": str(tmp_path / "rows.jsonl")},
            rewards=[{"name": "answer_normalized"}],
            eval={"num_answers": 2, "endpoint": given, **options},
        )

    return config


def test_its_answers_are_scored_as_ones_of_vlrls_own(
    configured: Any, server: JudgeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLOSED_KEY", "secret")
    found = evaluate_model(configured({"api_key_env": "CLOSED_KEY"}))
    assert found.values() == {name: 0.5 for name in found.values()}
    assert set(found.values()) == {"greedy", "mean@2", "pass@1", "pass@2", "majority@2"}
    assert len(server.seen) == 3 * NUM_ROWS
    assert {seen.headers["authorization"] for seen in server.seen} == {"Bearer secret"}
    greedy = [seen.body for seen in server.seen if seen.body["temperature"] == 0]
    sampled = [seen.body for seen in server.seen if seen.body["temperature"] == 1]
    assert (len(greedy), len(sampled)) == (NUM_ROWS, 2 * NUM_ROWS)
    assert len({body["seed"] for body in sampled}) == len(sampled)
    image, text = greedy[0]["messages"][-1]["content"]
    data = image["image_url"]["url"].partition("base64,")[2]
    assert Image.open(io.BytesIO(base64.b64decode(data))).getpixel((3, 3)) == (200, 10, 10)
    assert text == {"type": "text", "text": greedy[0]["messages"][-1]["content"][-1]["text"]}


@pytest.mark.parametrize("code", ["content_filter", "content_policy_violation"])
def test_what_a_filter_refuses_is_a_wrong_answer(configured: Any, server: JudgeServer, code: str) -> None:
    body = json.dumps({"error": {"code": code, "message": "filtered"}}).encode()
    server.answer = lambda seen: Reply(status=400, body=body) if seen.text == "2" else right(seen)
    found = evaluate_model(configured())
    assert found.accuracy_greedy == pytest.approx(2 / 6)  # of 0, 2 and 4
    assert len(server.seen) == 3 * NUM_ROWS


def test_what_passes_is_tried_again_within_the_limits(configured: Any, server: JudgeServer) -> None:
    server.script.extend([Reply(status=429), Reply(cut=True), Reply(body=b"{}"), Reply(status=503)])

    def together(seen: Seen) -> Reply:
        assert server.wait_for(lambda: server.most_in_flight >= 2), "one after the other"
        return right(seen)

    server.answer = together
    found = evaluate_model(configured({"max_concurrency": 2}))
    assert found.accuracy_greedy == 0.5
    assert len(server.seen) == 3 * NUM_ROWS + 4
    assert server.most_in_flight == 2


def test_rows_that_were_answered_before_it_failed_are_not_asked_again(
    configured: Any, server: JudgeServer, tmp_path: Path
) -> None:
    whole = evaluate_model(configured()).summary()
    kept = tmp_path / "out" / "samples.jsonl"
    server.seen.clear()

    def closing(seen: Seen) -> Reply:
        """Refuse the ninth request and later ones, once an answer is kept."""
        if len(server.seen) <= 8:
            return right(seen)
        for _ in range(2000):
            if read_rollouts(kept):
                break
            time.sleep(0.01)
        return Reply(status=401)

    server.answer = closing
    with pytest.raises(ChatFailure, match=r"model 'closed' at http.*HTTP 401"):
        evaluate_model(configured({"max_concurrency": 1}), out=tmp_path / "out")
    num_kept = len(read_rollouts(kept))
    assert num_kept > 0
    server.seen.clear()
    server.answer = right
    assert evaluate_model(configured(), out=tmp_path / "out").summary() == whole
    assert len(server.seen) == 3 * NUM_ROWS - num_kept
    other = configured({"model": "other"})
    with pytest.raises(ConfigError, match=r"eval\.endpoint\.model: 'closed' → 'other'"):
        evaluate_model(other, out=tmp_path / "out")


def test_an_answer_that_was_cut_is_truncated(configured: Any, server: JudgeServer, tmp_path: Path) -> None:
    server.answer = lambda seen: cut(right(seen))
    evaluate_model(configured(), out=tmp_path / "out")
    records = read_rollouts(tmp_path / "out" / "samples.jsonl")
    assert {record["outcome"] for record in records} == {"truncated"}


def cut(reply: Reply) -> Reply:
    """The same as a server sends it that has reached max_tokens."""
    choice = {"message": {"content": reply.content}, "finish_reason": "length"}
    return Reply(body=json.dumps({"choices": [choice]}).encode())


def test_a_key_that_is_not_there_is_told(configured: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CLOSED_KEY", raising=False)
    with pytest.raises(ConfigError, match=r"eval\.endpoint\.api_key_env='CLOSED_KEY'"):
        evaluate_model(configured({"api_key_env": "CLOSED_KEY"}))
