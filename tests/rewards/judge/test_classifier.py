"""The classifier reward against a real HTTP server that speaks /classify, and fails on demand."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from builders import make_sample, make_trajectory
from judge_server import JudgeServer, Reply, Seen

from vlrl.config.options import RewardConfig
from vlrl.errors import ConfigError
from vlrl.rewards.judge.classifier import classifier, probability
from vlrl.rewards.judge.endpoint import JudgeFailure
from vlrl.scoring.compose import ComposedReward, RewardFailure
from vlrl.types import Media

PROMPT = ({"role": "user", "content": "What is 3 + 5?"},)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[JudgeServer]:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with JudgeServer().running() as running:
        yield running


def says(*probs: Any, label: str = "good", **reply: Any) -> Reply:
    data = [{"index": 0, "label": label, "probs": list(probs), "num_classes": len(probs)}]
    return Reply(body=json.dumps({"object": "list", "data": data}).encode(), **reply)


def score(server: JudgeServer, text: str = "8", **options: Any) -> float:
    where = {"base_url": server.url, "model": "the/rm", "backoff_s": 0, **options.pop("endpoint", {})}
    return asyncio.run(classifier(text, None, endpoint=where, prompt=PROMPT, **options))


def test_the_value_is_the_probability_of_the_class(server: JudgeServer) -> None:
    server.answer = lambda seen: says(0.2, 0.7, 0.1)
    assert score(server) == 0.1 and score(server, label=1) == 0.7 and score(server, label="good") == 0.7
    server.answer = lambda seen: says(0.25)
    assert score(server) == score(server, label=0) == 0.25
    server.answer = lambda seen: says(0.75, 0.25, label="bad")
    assert score(server, label="good") == 0.25


def test_what_is_sent(server: JudgeServer) -> None:
    server.answer = lambda seen: says(0.5)
    pixels = np.zeros((1, 28, 28, 3), np.uint8)
    score(server, "8<|im_end|>", media=(Media("image", "a", pixels, (28, 28), (1, 2, 2), 1),))
    (seen,) = server.seen
    user, assistant = seen.body["messages"]
    assert seen.path == "/classify" and seen.body["model"] == "the/rm"
    assert seen.body["add_generation_prompt"] is False
    assert "<|im_end|>" not in assistant["content"] and assistant["content"].startswith("8")
    assert [part["type"] for part in user["content"]] == ["text", "image_url", "text"]
    assert user["content"][-1]["text"] == "What is 3 + 5?"


def test_verbatim_is_the_rows_own_conversation(server: JudgeServer) -> None:
    server.answer = lambda seen: says(0.5)
    pixels = np.zeros((1, 28, 28, 3), np.uint8)
    media = (
        Media("image", "a", pixels, (28, 28), (1, 2, 2), 1),
        Media("image", "b", pixels, (28, 28), (1, 2, 2), 1),
    )
    parts = [
        {"type": "text", "text": "Is"},
        {"type": "image"},
        {"type": "text", "text": "like"},
        {"type": "image"},
    ]
    prompt = ({"role": "system", "content": "Be brief."}, {"role": "user", "content": parts})
    where = {"base_url": server.url, "model": "the/rm"}
    asyncio.run(classifier("yes", None, endpoint=where, verbatim=True, prompt=prompt, media=media))
    system, user, assistant = server.seen[0].body["messages"]
    assert system == {"role": "system", "content": "Be brief."}
    assert [part.get("text", part["type"]) for part in user["content"]] == [
        "Is",
        "image_url",
        "like",
        "image_url",
    ]
    assert assistant == {"role": "assistant", "content": "yes"}
    asyncio.run(
        classifier(
            "yes", None, endpoint={**where, "images": False}, verbatim=True, prompt=prompt, media=media
        )
    )
    assert [part["text"] for part in server.seen[1].body["messages"][1]["content"]] == ["Is", "like"]
    video = ({"role": "user", "content": [{"type": "video"}]},)
    with pytest.raises(ConfigError, match="the row has a video; set verbatim=false"):
        asyncio.run(classifier("yes", None, endpoint=where, verbatim=True, prompt=video, media=media))


def test_empty_text_is_not_sent(server: JudgeServer) -> None:
    for text in ("", "  ", "x" * 30_000):
        assert score(server, text) == 0
    assert score(server, "no tags", part="answer") == 0
    assert server.seen == []


def test_an_endpoint_that_fails_is_tried_again_and_then_a_failure(server: JudgeServer) -> None:
    server.script.extend([Reply(status=503), Reply(cut=True), Reply(body=b"no json"), says(0.5)])
    assert score(server) == 0.5 and len(server.seen) == 4
    server.answer = lambda seen: Reply(status=500)
    with pytest.raises(JudgeFailure, match="HTTP 500"):
        score(server, endpoint={"max_retries": 1})
    server.seen.clear()
    server.answer = lambda seen: Reply(status=404)
    with pytest.raises(JudgeFailure, match="HTTP 404"):
        score(server)
    assert len(server.seen) == 1


@pytest.mark.parametrize(
    "reply",
    [{}, [], 7, None, {"data": []}, {"data": [{"probs": []}]}, {"data": [{"probs": [1.5]}]},
     {"data": [{}, {}]},
     {"data": [{"probs": ["1"]}]}, {"data": [{"probs": [float("nan")]}]}, {"data": [{"probs": [True]}]}],
    ids=str,
)  # fmt: skip
def test_what_are_no_probabilities_is_a_failure_never_a_score(reply: Any) -> None:
    with pytest.raises(JudgeFailure, match="classifier"):
        probability(reply, -1, "m")


def test_in_a_run_a_failure_is_masked(server: JudgeServer) -> None:
    def answer(seen: Seen) -> Reply:
        return says(0.9) if seen.body["messages"][1]["content"] == "8" else Reply(status=400)

    server.answer = answer
    options = {"endpoint": {"base_url": server.url, "model": "m", "backoff_s": 0}}
    episodes = [make_trajectory(make_sample(messages=PROMPT), [1], completion=text) for text in ("8", "9")]
    with ComposedReward([RewardConfig(name="classifier", options=options)]) as reward:
        fine, failed = asyncio.run(reward.score_all(episodes))
    assert not isinstance(fine, RewardFailure) and fine.total == 0.9
    assert isinstance(failed, RewardFailure)


def test_the_key_is_asked_for(server: JudgeServer) -> None:
    with pytest.raises(ConfigError, match="no such variable"):
        score(server, endpoint={"api_key_env": "VLRL_NO_SUCH_KEY"})
