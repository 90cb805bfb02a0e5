"""The judge rewards against a real HTTP server: what is sent, made of the verdict, and counted."""

from __future__ import annotations

import asyncio
import base64
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from builders import make_sample, make_trajectory, random_image
from judge_server import JudgeServer, Reply, Seen
from PIL import Image

from vlrl.config.options import RewardConfig
from vlrl.errors import ConfigError
from vlrl.rewards.judge.endpoint import JudgeEndpoint, parse_endpoint
from vlrl.rewards.judge.scores import judge, judge_pairwise
from vlrl.rewards.judge.stats import judge_stats, take_judge_metrics
from vlrl.scoring.author import Scored
from vlrl.scoring.compose import ComposedReward, RewardFailure
from vlrl.scoring.functions import find_reward
from vlrl.types import Media

PROMPT = ({"role": "user", "content": "What is 3 + 5?"},)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[JudgeServer]:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    take_judge_metrics()
    with JudgeServer().running() as running:
        yield running


def said(text: str) -> str:
    return f"<think>…</think><answer>{text}</answer>"


def endpoint(server: JudgeServer, **fields: Any) -> dict[str, Any]:
    return {"base_url": server.url, "model": "the/judge", "backoff_s": 0, **fields}


def score(server: JudgeServer, completion: str = said("8"), answer: Any = "8", **options: Any) -> float:
    where = endpoint(server, **options.pop("endpoint", {}))
    found = asyncio.run(judge(completion, answer, endpoint=where, **{"prompt": PROMPT, **options}))
    return float(found.value or 0.0) if isinstance(found, Scored) else found


def compare(server: JudgeServer, completion: str = said("8"), answer: Any = "9", **options: Any) -> Any:
    return asyncio.run(
        judge_pairwise(completion, answer, endpoint=endpoint(server), **{"prompt": PROMPT, **options})
    )


def media(pixels: Any, kind: Any = "image", name: str = "a") -> Media:
    frames = pixels if pixels.ndim == 4 else pixels[None]
    times = tuple(0.5 * i for i in range(len(frames))) if kind == "video" else ()
    return Media(kind, name, frames, frames.shape[1:3], (1, 2, 2), 1, times, 2.0 if times else None)


def decoded(part: dict[str, Any]) -> tuple[str, Any]:
    head, data = part["image_url"]["url"].split(",")
    return head, np.asarray(Image.open(io.BytesIO(base64.b64decode(data))))


@pytest.mark.parametrize(
    ("scale", "given", "expected"),
    [((0, 10), 5, 0.5), ((0, 10), 0, 0.0), ((0, 10), 10.0, 1.0), ([1, 5], 3, 0.5), ((-1, 1), -0.5, 0.25)],
)
def test_the_score_is_mapped_to_the_unit_interval(
    server: JudgeServer, scale: Any, given: float, expected: float
) -> None:
    server.answer = lambda seen: Reply(json.dumps({"reason": "r", "score": given}))
    assert score(server, scale=scale) == expected
    lo, hi = scale
    assert f"from {lo:g} (worst) to {hi:g} (best)" in server.seen[0].system


def test_the_judges_reason_is_the_explanation(server: JudgeServer) -> None:
    server.answer = lambda seen: Reply(json.dumps({"reason": "<b>it is</b> 8", "score": 10}))
    found = asyncio.run(judge(said("8"), "8", endpoint=endpoint(server), prompt=PROMPT))
    assert found == Scored(1.0, explanation="<b>it is</b> 8")


@pytest.mark.parametrize("scale", [(0,), (1, 1), (2, 1), "high", (0, float("nan")), (0, float("inf")), 5])
def test_a_scale_that_is_none_is_refused(server: JudgeServer, scale: Any) -> None:
    with pytest.raises(ConfigError, match="scale"):
        score(server, scale=scale)


def test_the_request_is_a_chat_completion_that_asks_for_one_json_object(server: JudgeServer) -> None:
    score(server)
    (seen,) = server.seen
    assert seen.path == "/v1/chat/completions"
    assert (seen.body["model"], seen.body["temperature"], seen.body["max_tokens"]) == ("the/judge", 0, 1024)
    assert [m["role"] for m in seen.body["messages"]] == ["system", "user"]
    form = seen.body["response_format"]
    assert form["type"] == "json_schema"
    assert form["json_schema"]["schema"]["required"] == ["reason", "score"]
    for text in ("What is 3 + 5?", "The reference answer:", "The answer to grade:", "\n8\n"):
        assert text in seen.text
    assert "…" not in seen.text, "the think part is not judged"
    assert "authorization" not in seen.headers


def test_fields_of_the_body_are_added_replaced_and_taken_out(server: JudgeServer) -> None:
    extra = {"max_completion_tokens": 99, "max_tokens": None, "temperature": None, "response_format": None}
    score(server, endpoint={"extra_body": extra})
    assert server.seen[0].body.keys() == {"model", "messages", "max_completion_tokens"}


def test_the_key_comes_from_the_environment(server: JudgeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUDGE_TEST_KEY", "sk-secret")
    score(server, endpoint={"api_key_env": "JUDGE_TEST_KEY"})
    assert server.seen[0].headers["authorization"] == "Bearer sk-secret"
    monkeypatch.delenv("JUDGE_TEST_KEY")
    with pytest.raises(ConfigError, match="JUDGE_TEST_KEY"):
        score(server, endpoint={"api_key_env": "JUDGE_TEST_KEY"})


@pytest.mark.parametrize(
    ("fields", "match"),
    [
        ({"base_url": "127.0.0.1:8000/v1"}, "base_url"),
        ({"base_url": "http://user:key@127.0.0.1/v1"}, "api_key_env"),
        ({"base_url": "file:///etc/passwd"}, "base_url"),
        ({"api_key": "sk-secret"}, "endpoint.api_key.*known: base_url"),
        ({"timeout_s": 0}, "timeout_s"),
        ({"max_retries": -1}, "max_retries"),
        ({"image_format": "gif"}, "image_format"),
    ],
)
def test_a_wrong_endpoint_is_named(server: JudgeServer, fields: dict[str, Any], match: str) -> None:
    with pytest.raises(ConfigError, match=match):
        score(server, endpoint=fields)
    assert not server.seen


@pytest.mark.parametrize(
    "completion",
    ["", "   ", "8", "<answer>8</answer>", "<think></think><answer> </answer>", said("x" * 20_001),
     "<think></think><answer>8</answer><answer>9</answer>", "<think>" * 5000],
)  # fmt: skip
def test_degenerate_completions_score_nothing_and_are_not_sent(server: JudgeServer, completion: str) -> None:
    assert score(server, completion) == 0.0
    assert compare(server, completion) == 0.0
    assert not server.seen and not take_judge_metrics()


def test_the_whole_completion_is_judged_on_request(server: JudgeServer) -> None:
    assert score(server, "Eight, I think.", part="whole") == 0.5
    assert "\nEight, I think.\n" in server.seen[0].text
    assert score(server, " ", part="whole") == 0.0


def test_a_sample_without_a_reference_is_judged_by_the_rubric_alone(server: JudgeServer) -> None:
    score(server, answer=None, rubric="Is it polite?")
    assert server.seen[0].text.startswith("Is it polite?")
    assert "reference" not in server.seen[0].text
    score(server, answer={"box": [1, 2]})
    assert '{"box": [1, 2]}' in server.seen[1].text
    score(server, answer="a secret", show_reference=False)
    assert "secret" not in server.seen[2].text


def test_images_are_sent_before_the_text(server: JudgeServer) -> None:
    first, second = random_image(30, 40), random_image(20, 20, seed=1)
    prompt = [
        {"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "or"}, {"type": "image"}]}
    ]
    shown = (media(first), media(second, name="b"))
    score(server, prompt=prompt, media=shown, endpoint={"image_format": "png"})
    parts = server.seen[0].parts
    assert [p["type"] for p in parts] == ["text", "image_url", "text", "image_url", "text"]
    assert [p["text"] for p in parts[:4:2]] == ["[image 1]", "[image 2]"]
    assert "[image 1]or[image 2]" in server.seen[0].text
    for part, pixels in zip(parts[1:4:2], (first, second), strict=True):
        head, found = decoded(part)
        assert head == "data:image/png;base64" and np.array_equal(found, pixels)


def test_large_images_are_shrunk_and_videos_thinned_out(server: JudgeServer) -> None:
    large = media(np.full((300, 600, 3), 200, np.uint8))
    frames = np.stack([np.full((40, 40, 3), 20 * i, np.uint8) for i in range(9)])
    score(
        server,
        media=(large, media(frames, "video", "v")),
        endpoint={"max_image_pixels": 5000, "max_frames": 3},
    )
    parts = server.seen[0].parts
    head, found = decoded(parts[1])
    assert head == "data:image/jpeg;base64" and found.shape[:2] == (50, 100)
    assert parts[2]["text"] == "[video 2], frames at 0.00 s, 2.00 s, 4.00 s"
    assert [round(float(decoded(p)[1].mean())) for p in parts[3:6]] == [0, 80, 160]


def test_a_judge_that_reads_text_gets_text(server: JudgeServer) -> None:
    score(server, media=(media(random_image(30, 30)),), endpoint={"images": False})
    assert isinstance(server.seen[0].body["messages"][1]["content"], str)


def test_it_is_a_registered_reward_that_runs_in_the_driver(server: JudgeServer) -> None:
    for name in ("judge", "judge_pairwise"):
        found = find_reward(name, {"endpoint": endpoint(server), "part": "whole"})
        assert found.in_driver and found.declared.range == (0.0, 1.0)
        assert all(map(found.wants, ("prompt", "media", "sample", "rubric")))
        assert not found.wants("endpoint")
    with pytest.raises(ConfigError, match="no option 'rubrik'"):
        find_reward("judge", {"endpoint": endpoint(server), "rubrik": "x"})


@pytest.mark.parametrize("name", ["endpoint", "rubric_file"])
def test_a_row_does_not_say_where_things_go(server: JudgeServer, name: str) -> None:
    sample = make_sample(metadata={name: "elsewhere"})
    for call in (score, compare):
        with pytest.raises(ValueError, match=name):
            call(server, sample=sample)
    assert not server.seen


def winner(*names: str) -> Any:
    """Answers by which of two texts stands first: 8 is the completion."""
    first_order, second_order = names

    def answer(seen: Seen) -> Reply:
        name = first_order if seen.text.index("\n8\n") < seen.text.index("\n9\n") else second_order
        return Reply(json.dumps({"reason": "r", "winner": name}))

    return answer


@pytest.mark.parametrize(
    ("forward", "backward", "value", "disagree"),
    [
        ("first", "second", 1.0, 0.0),
        ("second", "first", 0.0, 0.0),
        ("tie", "tie", 0.5, 0.0),
        ("first", "first", 0.5, 1.0),  # it likes whatever comes first
        ("second", "second", 0.5, 1.0),
        ("first", "tie", 0.5, 1.0),
        ("tie", "first", 0.5, 1.0),
    ],
)
def test_a_pair_is_compared_in_both_orders(
    server: JudgeServer, forward: str, backward: str, value: float, disagree: float
) -> None:
    server.answer = winner(forward, backward)
    assert compare(server) == Scored(value, {"judge_pairwise_disagreement": disagree})
    assert len(server.seen) == 2
    orders = {seen.text.index("\n8\n") < seen.text.index("\n9\n") for seen in server.seen}
    assert orders == {True, False}
    assert take_judge_metrics()["judge/the-judge/disagreement_fraction"] == disagree


@pytest.mark.parametrize("answer", [None, "", [], ["8", "9"], {"a": 1}])
def test_a_pair_needs_one_reference(server: JudgeServer, answer: Any) -> None:
    with pytest.raises(ValueError, match=r"answer|reference"):
        compare(server, answer=answer)


def test_what_judges_did_is_counted_by_model(server: JudgeServer, tmp_path: Path) -> None:
    options = {"price_in": 2.0, "price_out": 10.0, "cache_dir": str(tmp_path)}
    server.script += [Reply(status=500), Reply("hm")]
    score(server, endpoint=options)
    score(server, endpoint=options)
    found = {name.removeprefix("judge/the-judge/"): n for name, n in take_judge_metrics().items()}
    assert found.pop("latency_p50_s") > 0 and found.pop("latency_p95_s") > 0
    assert found.pop("cost") == pytest.approx(2 * (100 * 2 + 20 * 10) / 1e6)
    assert found == {
        "num_calls": 2, "num_cached": 1, "num_requests": 3, "num_retries": 1, "num_reasks": 1,
        "num_failures": 0, "num_cache_errors": 0, "tokens_in": 200, "tokens_out": 40,
    }  # fmt: skip
    assert take_judge_metrics() == {}


@pytest.mark.parametrize("usage", [None, {}, [], {"prompt_tokens": None, "completion_tokens": -5}])
def test_a_server_that_counts_no_tokens_is_no_error(server: JudgeServer, usage: Any) -> None:
    server.script.append(Reply(usage=usage))
    assert score(server) == 0.5
    assert take_judge_metrics()["judge/the-judge/tokens_in"] == 0


def test_in_the_runs_reward_a_failed_judge_is_a_failure_with_the_samples_id(server: JudgeServer) -> None:
    where = endpoint(server, max_retries=0)
    options = {"endpoint": where, "part": "whole"}
    reward = ComposedReward([RewardConfig(name="judge", options=options, weight=2.0)])
    trajectory = make_trajectory(make_sample(answer="8"), [1], completion="eight")
    assert asyncio.run(reward.score(trajectory)).total == 1.0
    server.answer = lambda seen: Reply(status=500)
    with pytest.raises(RewardFailure, match=r"judge.*'s'.*HTTP 500"):
        asyncio.run(reward.score(trajectory))


def test_the_docs_example_is_a_config_and_every_option_is_named_and_read(root: Path) -> None:
    text = (root / "docs/rewards.md").read_text()
    section = text[text.index("\n## Judge\n") :].split("\n## ", 2)[1]
    example = yaml.safe_load(section.split("```yaml\n")[1].split("```")[0])
    (config,) = (RewardConfig(**reward) for reward in example["rewards"] if reward["name"] == "judge")
    assert find_reward(config.name, config.options).label == "judge"
    assert parse_endpoint(config.options["endpoint"]).max_concurrency == 32
    for field in JudgeEndpoint.model_fields:
        assert f"`{field}`" in section, f"docs/rewards.md leaves out endpoint.{field}"
    folders = (root / "rewards" / "judge", root / "vlrl" / "chat_client")
    sources = "".join(path.read_text() for folder in folders for path in folder.glob("*.py"))
    for field in JudgeEndpoint.model_fields:
        assert f"ndpoint.{field}" in sources, f"law 9: nothing reads endpoint.{field}"
    for name in judge_stats("m").metrics():
        assert f"`{name}`" in section, f"docs/rewards.md leaves out the metric {name}"
