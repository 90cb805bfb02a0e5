"""Endpoints that fail, judges that do not answer, the cache, and limits: over real sockets."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from builders import random_image
from hypothesis import given
from hypothesis import strategies as st
from judge_server import JudgeServer, Reply, Seen

from vlrl.chat_client.client import MAX_WAIT_S, retry_wait_s
from vlrl.rewards.judge.client import UnreadableVerdict, parse_verdict
from vlrl.rewards.judge.endpoint import JudgeFailure, parse_endpoint
from vlrl.rewards.judge.scores import judge
from vlrl.rewards.judge.stats import take_judge_metrics
from vlrl.scoring.author import Scored
from vlrl.types import Media

CUT = Reply(cut=True)


@pytest.fixture
def server() -> Iterator[JudgeServer]:
    take_judge_metrics()
    with JudgeServer().running() as running:
        yield running


async def ask(
    server: JudgeServer, completion: str = "8", media: Any = (), rubric: str = "r", **fields: Any
) -> Any:
    where = {"base_url": server.url, "model": "m", "backoff_s": 0, **fields}
    found = await judge(completion, "8", endpoint=where, part="whole", rubric=rubric, media=media)
    return found.value if isinstance(found, Scored) else found


def score(server: JudgeServer, *arguments: Any, **fields: Any) -> float:
    return asyncio.run(ask(server, *arguments, **fields))


def metric(name: str) -> float:
    return take_judge_metrics()[f"judge/m/{name}"]


@pytest.mark.parametrize(
    "fault",
    [
        Reply(status=429, headers={"Retry-After": "0"}),
        Reply(status=429, headers={"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}),
        Reply(status=429, headers={"Retry-After": "soon"}),
        Reply(status=408),
        Reply(status=500, body=b"<html>oops</html>"),
        Reply(status=503),
        CUT,
        Reply(body=b'{"choices": [{"message": {"cont'),
        Reply(body=b"[" * 100_000),
        Reply(body=b"\xff\xfe"),
        Reply(body=b"{}"),
        Reply(body=b'{"choices": []}'),
        Reply(body=b'{"choices": [null]}'),
        Reply(body=b'["choices"]'),
        Reply(body=b"null"),
    ],
    ids=lambda fault: f"{fault.status}-{'cut' if fault.cut else (fault.body or b'')[:20]}",
)
def test_a_passing_fault_is_tried_again(server: JudgeServer, fault: Reply) -> None:
    server.script.append(fault)
    assert score(server) == 0.5
    assert len(server.seen) == 2
    assert server.seen[0].body == server.seen[1].body
    assert metric("num_retries") == 1


@pytest.mark.parametrize("fault", [Reply(status=500, body=b"out of memory"), CUT, Reply(body=b"hello")])
def test_a_fault_that_stays_is_a_failure_and_no_score(server: JudgeServer, fault: Reply) -> None:
    server.answer = lambda seen: replace(fault)
    with pytest.raises(JudgeFailure, match=r"judge 'm' at http://127.0.0.1.*3 tries failed.*max_retries"):
        score(server, max_retries=2)
    assert len(server.seen) == 3
    assert metric("num_failures") == 1


def test_nobody_there_is_a_failure(server: JudgeServer) -> None:
    with socket.socket() as taken:  # bound, but nobody listens
        taken.bind(("127.0.0.1", 0))
        with pytest.raises(JudgeFailure, match="ConnectError"):
            score(server, base_url=f"http://127.0.0.1:{taken.getsockname()[1]}/v1", max_retries=1)


@pytest.mark.parametrize("fault", [Reply(hold=True), Reply(stall=True)])
def test_a_slow_answer_is_cut_off_and_tried_again(server: JudgeServer, fault: Reply) -> None:
    server.script.append(fault)
    assert score(server, timeout_s=0.5) == 0.5
    assert server.wait_for(lambda: server.num_hung_up >= 1), "the slow request was hung up on"
    server.script += [replace(fault), replace(fault)]
    with pytest.raises(JudgeFailure, match=r"timeout_s=0\.2"):
        score(server, "7", timeout_s=0.2, max_retries=1)


def test_the_server_says_how_long_to_wait(server: JudgeServer) -> None:
    server.script.append(Reply(status=429, headers={"Retry-After": "0.4"}))
    score(server)
    assert server.seen[1].time_s - server.seen[0].time_s >= 0.4


@given(st.text(max_size=5), st.integers(1, 60), st.floats(0, 100))
def test_waits_grow_are_bounded_and_repeatable(seed: str, attempt: int, backoff_s: float) -> None:
    where = parse_endpoint({"base_url": "http://h/v1", "model": "m", "backoff_s": backoff_s})
    wait = retry_wait_s(where, seed, attempt)
    assert wait == retry_wait_s(where, seed, attempt)
    full = backoff_s * 2 ** min(attempt - 1, 32)
    assert min(full / 2, MAX_WAIT_S) <= wait <= min(full, MAX_WAIT_S)


def test_questions_do_not_wait_in_step() -> None:
    where = parse_endpoint({"base_url": "http://h/v1", "model": "m"})
    assert len({retry_wait_s(where, f"question {i}", 1) for i in range(100)}) == 100


@pytest.mark.parametrize("status", [301, 400, 401, 403, 404, 413])
def test_an_error_that_stays_is_not_tried_again(
    server: JudgeServer, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUDGE_TEST_KEY", "sk-secret")
    server.answer = lambda seen: Reply(
        status=status,
        body=b"no such model; your key is sk-secret",
        headers={"Location": "http://127.0.0.1:9/"},
    )
    with pytest.raises(JudgeFailure, match=f"HTTP {status}: no such model") as failure:
        score(server, api_key_env="JUDGE_TEST_KEY")
    assert len(server.seen) == (2 if status == 400 else 1)  # 400 may have been about response_format
    assert "sk-secret" not in str(failure.value) and "***" in str(failure.value)


def test_a_server_without_response_format_is_asked_without(server: JudgeServer) -> None:
    def answer(seen: Seen) -> Reply:
        return Reply(status=422, body=b"what?") if "response_format" in seen.body else Reply()

    server.answer = answer

    async def thrice() -> list[float]:
        return [await ask(server, text) for text in "789"]

    assert asyncio.run(thrice()) == [0.5] * 3
    assert ["response_format" in seen.body for seen in server.seen] == [True, False, False, False]


UNREADABLE = [
    "10", "Score: 10", "I'd say 10/10.", '"10"', "[10]", "null", "", "   ", "{", '{"score": }',
    '{"points": 10}', '{"Score": 10}', '{"score": "10"}', '{"score": true}', '{"score": null}',
    '{"score": [10]}',
    '{"score": NaN}', '{"score": Infinity}', '{"score": 1e400}', '{"score": -1e400}', '{"score": 10.01}',
    '{"score": -0.01}', '{"score": 11}', '{"score": 1' + "0" * 5000 + "}", '{"score": 1, "score": 10}',
    'The answer is right. {"score": 10}', '{"score": 10} as I said', '{"score": 10}\n{"score": 0}',
    '```json\n{"score": 10}\n```\nbut', "<think>{}</think>", '<think>{"score": 10}',
    '<think>quoted: </think>{"score": 10}</think>{"score": 0}',
    '<think>a</think><think>b</think>{"score": 10}',
    'It is right. <think>a</think>{"score": 10}', '{"a":' * 50_000, "[" * 100_000,
]  # fmt: skip


@pytest.mark.parametrize("content", UNREADABLE, ids=lambda text: text[:24])
def test_what_is_no_verdict_is_asked_for_once_more_then_fails(server: JudgeServer, content: str) -> None:
    server.script.append(Reply(content))
    assert score(server) == 0.5
    first, second = server.seen
    assert second.text.startswith(first.text) and "JSON object" in second.text[len(first.text) :]
    assert metric("num_reasks") == 1
    server.answer = lambda seen: Reply(content)
    with pytest.raises(JudgeFailure, match="no verdict when asked twice"):
        score(server, "9")
    assert len(server.seen) == 4
    assert metric("num_failures") == 1


@pytest.mark.parametrize(
    "message",
    [{"content": None}, {"content": None, "refusal": "I can't"}, {"refusal": "no"}, {"content": ["x"]}],
)
def test_a_refusal_is_no_verdict(server: JudgeServer, message: dict[str, Any]) -> None:
    server.answer = lambda seen: Reply(message=message)
    with pytest.raises(JudgeFailure, match="refused"):
        score(server)
    assert len(server.seen) == 2


@pytest.mark.parametrize(
    "content", ['{"score": 5}', ' \n{"score": 5.0, "more": 1}\n', '```json\n{"score": 5}\n```']
)
def test_a_verdict_may_stand_in_white_space_or_one_fence(server: JudgeServer, content: str) -> None:
    server.script.append(Reply(content))
    assert score(server) == 0.5 and len(server.seen) == 1


@pytest.mark.parametrize(
    "content",
    [
        '<think>\nit says 8 {"score": 10}\n</think>\n\n{"score": 5}',
        'it says 8\n</think>\n\n{"score": 5}',  # the judge's own template opened the tag
        '<think></think>```json\n{"score": 5}\n```',
        '<thinking>so</thinking> {"score": 5}',
        '{"reason": "its </think> is open", "score": 5}',
    ],
)
def test_a_judges_thought_before_its_verdict_is_left_out(server: JudgeServer, content: str) -> None:
    server.script.append(Reply(content))
    assert score(server) == 0.5 and len(server.seen) == 1


@given(st.text() | st.recursive(st.none() | st.floats() | st.text(), st.lists).map(json.dumps))
def test_reading_raises_one_kind_of_error(text: str) -> None:
    with contextlib.suppress(UnreadableVerdict):
        assert isinstance(parse_verdict(text), dict)


def test_a_verdict_is_paid_for_once(server: JudgeServer, tmp_path: Path) -> None:
    first = score(server, cache_dir=tmp_path)
    server.answer = lambda seen: Reply(status=500)
    assert score(server, cache_dir=tmp_path, base_url=server.url + "/") == first == 0.5
    assert len(server.seen) == 1
    assert metric("num_cached") == 1
    (file,) = (path for path in tmp_path.rglob("*") if path.is_file())
    assert file.name.endswith(".json")


def test_everything_that_is_asked_is_in_the_key(server: JudgeServer, tmp_path: Path) -> None:
    def medium(name: str) -> Media:
        return Media("image", name, random_image(28, 28)[None], (28, 28), (1, 2, 2), 1)

    first, second = (medium("a"),), (medium("b"),)
    asked: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
        ((), {}), (("9",), {}), ((), {"rubric": "s"}), ((), {"model": "n"}), ((), {"max_tokens": 99}),
        ((), {"extra_body": {"top_p": 1}}), (("8", first), {}), (("8", second), {}),
        (("8", first + second), {}), (("8", second + first), {}), (("8", first), {"image_format": "png"}),
    ]  # fmt: skip
    for _ in range(2):
        for arguments, fields in asked:
            score(server, *arguments, cache_dir=tmp_path, **fields)
    assert len(server.seen) == len(asked)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda entry: b"",
        lambda entry: json.dumps(entry).encode()[:-9],
        lambda entry: b"\xff" * 40,
        lambda entry: b"[" * 100_000,
        lambda entry: b"[]",
        lambda entry: json.dumps({**entry, "key": "other"}).encode(),
        lambda entry: json.dumps({**entry, "verdict": 5}).encode(),
        lambda entry: json.dumps({**entry, "verdict": {"score": 50}}).encode(),
        lambda entry: json.dumps({**entry, "verdict": {"score": None}}).encode(),
    ],
)
def test_a_broken_entry_is_done_again(server: JudgeServer, tmp_path: Path, spoil: Any) -> None:
    score(server, cache_dir=tmp_path)
    (file,) = tmp_path.rglob("*.json")
    whole = file.read_bytes()
    file.write_bytes(spoil(json.loads(whole)))
    assert score(server, cache_dir=tmp_path) == 0.5
    assert len(server.seen) == 2
    assert file.read_bytes() == whole


def test_failures_are_not_kept(server: JudgeServer, tmp_path: Path) -> None:
    server.script += [Reply("hm"), Reply("hm")]
    with pytest.raises(JudgeFailure):
        score(server, cache_dir=tmp_path)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
    assert score(server, cache_dir=tmp_path) == 0.5


def test_a_disk_that_fails_does_not_lose_the_verdict(server: JudgeServer, tmp_path: Path) -> None:
    score(server, cache_dir=tmp_path)
    (file,) = tmp_path.rglob("*.json")
    file.unlink()
    file.parent.rmdir()
    file.parent.write_text("a file in the folder's place")
    assert score(server, cache_dir=tmp_path) == 0.5
    assert metric("num_cache_errors") == 1
    with pytest.raises(OSError, match=r"exists|directory"):
        score(server, cache_dir=file.parent)


def test_so_many_requests_are_in_flight_and_no_more(server: JudgeServer) -> None:
    """The server answers only in threes: with fewer at once it would wait, with more it would see them."""
    together = threading.Barrier(3, timeout=20)

    def answer(seen: Seen) -> Reply:
        together.wait()
        return Reply()

    server.answer = answer

    async def many() -> list[float]:
        return await asyncio.gather(*(ask(server, f"answer {i}", max_concurrency=3) for i in range(12)))

    assert asyncio.run(many()) == [0.5] * 12
    assert server.most_in_flight == 3


def test_equal_questions_at_one_time_are_asked_once(server: JudgeServer) -> None:
    async def many() -> list[float]:
        return await asyncio.gather(*(ask(server, "the same") for _ in range(8)))

    assert asyncio.run(many()) == [0.5] * 8
    assert len(server.seen) == 1
    assert metric("num_cached") == 7


def test_one_caller_that_gives_up_does_not_take_the_others_along(server: JudgeServer) -> None:
    go = threading.Event()

    def answer(seen: Seen) -> Reply:
        go.wait(20)
        return Reply()

    server.answer = answer

    async def main() -> float:
        first, second = (asyncio.create_task(ask(server)) for _ in range(2))
        await asyncio.to_thread(server.wait_for, lambda: server.in_flight == 1)
        first.cancel()
        await asyncio.wait([first])
        assert first.cancelled() and not second.done()
        go.set()
        return await second

    assert asyncio.run(main()) == 0.5
    assert len(server.seen) == 1


def test_a_cancelled_question_hangs_up(server: JudgeServer) -> None:
    server.answer = lambda seen: Reply(hold=True)

    async def main() -> None:
        task = asyncio.create_task(ask(server))
        await asyncio.to_thread(server.wait_for, lambda: server.in_flight == 1)
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
        assert await asyncio.to_thread(server.wait_for, lambda: server.num_hung_up == 1)

    asyncio.run(main())


def test_connections_are_reused_and_closed_with_the_loop(server: JudgeServer) -> None:
    with asyncio.Runner() as runner:
        for text in "789":
            runner.run(ask(server, text))
            assert server.num_open == 1
    assert server.wait_for(lambda: server.num_open == 0)


CHILD = """
import asyncio, sys
from vlrl.rewards.judge.scores import judge

async def main():
    where = {"base_url": sys.argv[1], "model": "m"}
    await asyncio.gather(*(judge(str(i), "8", endpoint=where, part="whole") for i in range(8)))

asyncio.run(main())
"""


def test_ctrl_c_hangs_up_and_leaves_quietly(server: JudgeServer) -> None:
    server.answer = lambda seen: Reply(hold=True)
    child = subprocess.Popen(
        [sys.executable, "-X", "dev", "-c", CHILD, server.url],
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ,
    )
    try:
        assert server.wait_for(lambda: server.in_flight == 8)
        child.send_signal(signal.SIGINT)
        _, errors = child.communicate(timeout=20)
    finally:
        child.kill()
    assert errors.strip().endswith("KeyboardInterrupt")
    assert "never retrieved" not in errors and "ResourceWarning" not in errors and "unclosed" not in errors
    assert server.wait_for(lambda: server.num_hung_up == 8)
