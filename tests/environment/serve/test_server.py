"""The server as any HTTP client meets it, and the command that starts it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import httpx2
import pytest
from serving import COUNTING, TOKEN, serving

from vlrl.environment.open import open_env
from vlrl.environment.serve.wire import loads
from vlrl.errors import ConfigError

PAIR = f"{Path(__file__).resolve()}:Pair"
CLI = [sys.executable, "-c", "from vlrl.cli.main import main; main()"]
HEADERS = {"Authorization": f"Bearer {TOKEN}"}


class Pair:
    """Two agents who speak in turn."""

    agents = ("a", "b")
    system_prompts: ClassVar[Any] = {"a": "You are a.", "b": "You are b."}

    def reset(self, task: Any, seed: int) -> Any:
        from vlrl.protocols import Observation

        return {"a": Observation("begin")}

    def step(self, actions: Any) -> Any:
        from vlrl.protocols import Observation, StepResult

        ((agent, said),) = actions.items()
        other = "b" if agent == "a" else "a"
        if said == "end":
            return {name: StepResult(Observation("over"), 1.0, True, False) for name in self.agents}
        return {other: StepResult(Observation(f"{agent} said {said}"), 0.0, False, False)}

    def close(self) -> None:
        pass


@pytest.fixture(scope="module")
def client() -> Iterator[httpx2.Client]:
    with serving() as url, httpx2.Client(base_url=url, headers=HEADERS, timeout=20) as client:
        yield client


def test_health_needs_no_token_and_everything_else_does(client: httpx2.Client) -> None:
    anonymous = {"Authorization": ""}
    health = client.get("/health", headers=anonymous)
    assert (health.status_code, health.json()["status"]) == (200, "ok")
    assert health.headers["Vlrl-Instance"] == health.json()["instance"]
    for method, path in [("GET", "/env"), ("PUT", "/sessions/x"), ("DELETE", "/sessions/x")]:
        for headers in (anonymous, {"Authorization": "Bearer " + TOKEN[:-1]}, {"Authorization": "Bearer é"}):
            encoded = {name: value.encode() for name, value in headers.items()}
            assert client.request(method, path, headers=encoded).status_code == 401
    assert client.get("/env").json()["system_prompt"] == "Count."


def test_a_step_is_told_again_and_not_made_again(client: httpx2.Client) -> None:
    begin = {"task": {}, "seed": 1}
    bodies = [client.put("/sessions/s1", json=begin).content for _ in range(3)]
    assert len(set(bodies)) == 1 and loads(bodies[0], "").text == "0"
    step = {"number": 1, "action": "go"}
    results = [loads(client.post("/sessions/s1/step", json=step).content, "") for _ in range(3)]
    assert [result.observation.text for result in results] == ["1"] * 3
    for number, action in [(1, "another"), (3, "too far"), (0, "back")]:
        answer = client.post("/sessions/s1/step", json={"number": number, "action": action})
        assert (answer.status_code, answer.json()["kind"]) == (409, "order")
    assert client.put("/sessions/s1", json={"task": {}, "seed": 2}).json()["kind"] == "order"
    assert client.delete("/sessions/s1").status_code == client.delete("/sessions/s1").status_code == 204
    late = client.post("/sessions/s1/step", json={"number": 2, "action": "late"})
    assert (late.status_code, late.json()["kind"]) == (410, "ended")


def test_two_that_ask_at_once_get_the_same_answer(client: httpx2.Client) -> None:
    client.put("/sessions/s2", json={"task": {}, "seed": 1})
    texts: list[str] = []

    def ask() -> None:
        with httpx2.Client(base_url=client.base_url, headers=HEADERS, timeout=20) as mine:
            answer = mine.post("/sessions/s2/step", json={"number": 1, "action": "sleep"})
            texts.append(loads(answer.content, "").observation.text)

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert texts == ["1"] * 3
    client.delete("/sessions/s2")


def test_another_instance_is_refused(client: httpx2.Client) -> None:
    answer = client.put("/sessions/s3", json={"task": {}, "seed": 1}, headers={"Vlrl-Instance": "other"})
    assert (answer.status_code, answer.json()["kind"]) == (409, "instance")
    assert client.get("/health").json()["num_sessions"] == 0


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("PUT", "/sessions/s4", b"{"),
        ("PUT", "/sessions/s4", b"[]"),
        ("PUT", "/sessions/s4", b'{"task": 1, "seed": 1}'),
        ("PUT", "/sessions/s4", b'{"task": {}, "seed": "x"}'),
        ("POST", "/sessions/s4/step", b'{"number": "1", "action": "a"}'),
        ("POST", "/sessions/s4/step", b'{"number": 1, "action": 5}'),
        ("POST", "/sessions/s4/step", b'{"number": 1, "action": "a", "canvases": [1]}'),
        ("POST", "/sessions/s4/step", b'{"number": 1, "action": "a", "canvases": [[[1],[2],"x"]]}'),
    ],
)
def test_a_request_that_is_none_is_refused(
    client: httpx2.Client, method: str, path: str, body: bytes
) -> None:
    answer = client.request(method, path, content=body)
    assert (answer.status_code, answer.json()["kind"]) == (400, "request")
    assert client.get("/health").json()["num_sessions"] == 0


def test_an_unknown_session(client: httpx2.Client) -> None:
    answer = client.post("/sessions/never/step", json={"number": 1, "action": "a"})
    assert (answer.status_code, answer.json()["kind"]) == (404, "unknown")


def test_a_wrong_option_shows_at_once() -> None:
    with pytest.raises(ConfigError, match="level"), serving("visual/mazes", {"level": "high"}):
        pass


@pytest.mark.parametrize("isolation", ["thread", "process"])
def test_several_agents_play_over_the_network(isolation: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from vlrl.config.rollout import EnvConfig

    monkeypatch.setenv("VLRL_ENV_TOKEN", TOKEN)
    with serving(PAIR, config=EnvConfig(isolation=isolation)) as url:
        env: Any = open_env("remote", {"url": url})
        assert (env.agents, env.system_prompts["b"]) == (("a", "b"), "You are b.")
        assert env.reset({}, 0)["a"].text == "begin"
        assert env.step({"a": "hello"})["b"].observation.text == "a said hello"
        over = env.step({"b": "end"})
        assert over["a"].terminated and over["b"].reward == 1.0
        env.close()


def test_the_command_serves_until_it_is_told_to_stop() -> None:
    command = [*CLI, "env", "serve", "visual/mazes", "level=2", "--json"]
    told = {**os.environ, "VLRL_ENV_TOKEN": TOKEN}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=told) as process:
        assert process.stdout is not None
        url = json.loads(process.stdout.readline())["url"]
        served = httpx2.get(f"{url}/env", headers=HEADERS, timeout=20).json()
        assert (served["env"], served["options"]) == ("visual/mazes", {"level": 2})
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0


def test_the_commands_own_token_is_told_on_stderr_alone() -> None:
    command = [*CLI, "env", "serve", COUNTING]
    told = {key: value for key, value in os.environ.items() if key != "VLRL_ENV_TOKEN"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=told) as process:
        assert process.stdout is not None and process.stderr is not None
        line = process.stderr.readline().decode()
        assert "VLRL_ENV_TOKEN=" in line
        assert "serving at http://127.0.0.1:" in process.stdout.readline().decode()
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0


def test_prometheus_reads_sessions_calls_and_failures() -> None:
    from prometheus_client.parser import text_string_to_metric_families

    with serving() as url, httpx2.Client(base_url=url, headers=HEADERS, timeout=20) as client:

        def numbers() -> dict[tuple[str, str], float]:
            answer = client.get("/metrics")
            assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
            families = text_string_to_metric_families(answer.text)
            return {
                (sample.name, sample.labels.get("method") or sample.labels.get("kind") or ""): sample.value
                for family in families
                for sample in family.samples
            }

        assert client.get("/metrics", headers={"Authorization": ""}).status_code == 401
        before = numbers()
        assert before["vlrl_env_sessions", ""] == 0 and before["vlrl_env_max_sessions", ""] > 0
        assert before["vlrl_env_failures_total", "raised"] == 0
        client.put("/sessions/m", json={"task": {}, "seed": 1})
        client.post("/sessions/m/step", json={"number": 1, "action": "go"})
        during = numbers()
        assert during["vlrl_env_sessions", ""] == 1
        assert during["vlrl_env_call_seconds_count", "reset"] == 1
        assert during["vlrl_env_call_seconds_count", "step"] == 1
        failed = client.post("/sessions/m/step", json={"number": 2, "action": "raise"})
        assert failed.status_code == 500
        after = numbers()
        assert after["vlrl_env_failures_total", "raised"] == 1 and after["vlrl_env_sessions", ""] == 0
