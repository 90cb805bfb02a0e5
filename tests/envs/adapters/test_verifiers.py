"""The adapter of verifiers against the real package, in an interpreter of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ecosystem import ROOT, python

from vlrl.environment.open import open_env
from vlrl.envs.adapters.verifiers.env import _spoken
from vlrl.envs.adapters.verifiers.process import process_of
from vlrl.errors import ConfigError
from vlrl.parsing.tool_calls import ParsedCall, parse_calls, write_call

EXAMPLE = ROOT / "examples" / "environments" / "verifiers_dots.py"
ENVS = ROOT / "tests" / "helpers" / "verifiers_envs"


@pytest.fixture
def env_of() -> Iterator[Callable[..., Any]]:
    """Opens environments; closes them after the test."""
    opened: list[Any] = []

    def make(file: Path | str, **options: Any) -> Any:
        opened.append(open_env("verifiers", {"id": str(file), "python": python(), **options}))
        return opened[-1]

    yield make
    for env in opened:
        env.close()


def answered(number: int) -> str:
    return f"<think>{'I count. ' * 40}</think><answer>{number}</answer>"


def marked(process: Any) -> list[int]:
    """The processes that belong to a program, itself included."""
    found = []
    for environ in Path("/proc").glob("[0-9]*/environ"):
        try:
            if process.mark.encode() in environ.read_bytes():
                found.append(int(environ.parent.name))
        except OSError:
            continue
    return found


def soon(true: Callable[[], bool]) -> bool:
    """Waits until something is true, not for ever."""
    deadline = time.monotonic() + 30
    while not true() and time.monotonic() < deadline:
        time.sleep(0.05)
    return true()


@pytest.mark.slow
def test_single_turn_with_an_image_and_named_rewards(env_of: Callable[..., Any]) -> None:
    env = env_of(EXAMPLE, success_above=0.5)
    assert (env.num_tasks(), env.tools, env.system_prompt) == (32, [], "You count with care.")
    task = env.task(3)
    number = int(task["data"]["answer"])
    shown = env.reset(task, 0)
    assert shown.text == "How many dots? Answer as <answer>3</answer>." and shown.role == "user"
    assert shown.images[0].size == (84, 84) and np.asarray(shown.images[0]).min() == 0
    ended = env.step(answered(number))
    assert (ended.reward, ended.terminated, ended.truncated) == (1.1, True, False)
    parts = {"reward/right": 1.0, "reward/form": pytest.approx(0.1), "metric/length": 18.0}
    assert ended.info == {"success": True, **parts}
    env.reset(task, 0)
    wrong = env.step(answered(number + 1))
    assert (wrong.reward, wrong.info["success"]) == (pytest.approx(0.1), False)
    with pytest.raises(RuntimeError, match="KeyError"):
        env.step("again")


def test_the_seed_draws_the_task_and_an_index_is_checked(env_of: Callable[..., Any]) -> None:
    env = env_of(EXAMPLE)
    images = [env.reset({}, seed).images[0].tobytes() for seed in (1, 1, 2, 3, 4)]
    assert images[0] == images[1] and len(set(images)) > 2
    for index in (-1, 32, "0", 1.0, True):
        with pytest.raises(ConfigError, match=r"index=.* must be in 0…31"):
            env.reset({"index": index}, 0)
    with pytest.raises(ConfigError, match="the task has 'indx'; index is read"):
        env.reset({"indx": 1}, 0)


@pytest.mark.slow
def test_many_episodes_at_once_share_one_program_from_its_start() -> None:
    def play(index: int) -> float:
        env = open_env("verifiers", {"id": str(EXAMPLE), "python": python(), "linger_s": 30.0})
        number = int(env.task(index)["data"]["answer"])  # type: ignore[attr-defined]
        env.reset({"index": index}, 0)
        reward = env.step(answered(number if index % 2 else 99)).reward  # type: ignore[union-attr]
        env.close()
        return float(reward)

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(play, range(24))) == [1.1 if index % 2 else 0.1 for index in range(24)]


@pytest.mark.slow
def test_several_turns_and_a_program_that_lingers_and_hangs(env_of: Callable[..., Any]) -> None:
    env = env_of(f"{ENVS}/guessing.py:load_environment", args={"highest": 5}, linger_s=0.5)
    with pytest.raises(ConfigError, match="without end; give each task its index"):
        env.num_tasks()
    shown = env.reset({"index": 2}, 0)
    assert (env.system_prompt, shown.text) == ("Game 1.", "Game 3.\nGuess a number.")
    assert shown.images[0].getpixel((0, 0)) == (0, 0, 0)
    first = env.step("<think>from below</think>1")
    assert (first.observation.text, first.reward, first.terminated) == ("higher", 0.0, False)
    assert first.observation.images[0].getpixel((0, 0)) == (1, 0, 0)
    assert env.step("5").observation.text == "lower"
    found = env.step("4")
    assert (found.terminated, found.reward) == (True, pytest.approx(1 / 3))
    assert env.reset({"index": 0}, 0).text == "Guess a number."
    for guess in "111":
        assert env.step(guess).observation.text == "higher"
    assert env.step("1").reward == 0.0
    env.reset({"index": 0}, 0)
    process = env._process
    time.sleep(1.0)
    assert process.alive  # an episode is under way
    env.close()
    assert soon(lambda: not process.alive) and marked(process) == []
    assert env.reset({"index": 2}, 0).text == "Game 3.\nGuess a number."  # a new program
    env._timeout_s = 0.5
    with pytest.raises(TimeoutError, match=r"no answer to step in 0.5 s"):
        env.step("0")
    assert soon(lambda: not env._process.alive)


@pytest.mark.slow
def test_tools_and_what_breaks(env_of: Callable[..., Any]) -> None:
    env = env_of(f"{ENVS}/scale.py")
    (tool,) = env.tools
    name = tool["function"]["name"]
    assert name == "scale_weigh" and tool["function"]["parameters"]["required"] == ["thing"]
    env.reset({"index": 0}, 0)
    weighed = env.step("<think>…</think>" + write_call(name, {"thing": "table"}))
    assert (weighed.observation.role, weighed.observation.text) == ("tool", "5 kg")
    two = env.step(write_call(name, {"thing": "ghost"}) + write_call("lift", {}))
    assert "a ghost weighs nothing" in two.observation.text and "unknown tool 'lift'" in two.observation.text
    unread = env.step("<tool_call>{name: weigh}</tool_call>")
    assert unread.info == {"invalid": True} and "A call looks like" in unread.observation.text
    drawn = [env.random_action(np.random.default_rng(seed)) for seed in range(12)]
    assert {len(parse_calls(text)) for text in drawn} == {0, 1}
    assert env.step("5 kg").reward == 1.0
    with pytest.raises(RuntimeError, match="no scale today"):
        env.reset({"index": 1}, 0)
    env.reset({"index": 2}, 0)
    with pytest.raises(RuntimeError, match="the answer is lost"):
        env.step("5 kg")
    process = process_of(python(), f"{ENVS}/scale.py", {}, 60.0)
    assert len(marked(process)) > 1  # the tools' server
    env.reset({"index": 3}, 0)
    with pytest.raises(ConnectionError, match="ended with code 3"):
        env.step("5 kg")
    assert marked(process) == []


@pytest.mark.slow
def test_two_agents_of_one_model_are_refused_and_the_program_ends_with_its_starter() -> None:
    code = f"""
import sys
from vlrl.environment.open import open_env
env = open_env("verifiers", {{"id": "{ENVS}/panel.py", "python": {python()!r}}})
env.reset({{"index": 0}}, 0)
try:
    env.step("hello")
except RuntimeError as error:
    print(env._process.pid, error, flush=True)
sys.stdin.readline()
"""
    command = [sys.executable, "-c", code]
    child = subprocess.Popen(command, stdin=-1, stdout=-1, text=True, cwd=ROOT, start_new_session=True)
    assert child.stdout is not None
    pid, error = child.stdout.readline().split(maxsplit=1)
    assert "give the others a model and a client of their own" in error
    assert Path(f"/proc/{pid}").exists()
    os.killpg(child.pid, signal.SIGKILL)  # as environments' hosts end what hangs
    child.communicate()
    assert soon(lambda: not Path(f"/proc/{pid}").exists())


def test_what_cannot_be_loaded_says_why(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"has no verifiers; pip install 'vlrl\[verifiers\]'"):
        open_env("verifiers", {"id": "gsm8k", "python": sys.executable})
    with pytest.raises(ConfigError, match="cannot be run"):
        open_env("verifiers", {"id": "gsm8k", "python": str(tmp_path / "python")})
    for name in ("taskset.py", "taskset.py:load_environment"):
        with pytest.raises(ConfigError, match=r"taskset.py does not exist"):
            open_env("verifiers", {"id": f"{tmp_path}/{name}", "python": python()})


def test_what_is_said_is_apart_from_thinking_and_calls() -> None:
    text = "<think>a</think> so " + write_call("look", {"at": 1}) + " then"
    (call,) = parse_calls(text)
    assert isinstance(call, ParsedCall)
    assert _spoken(text, [call]) == {"content": "so  then", "thinking": "a"}
    assert _spoken("b</think>c", []) == {"content": "c", "thinking": "b"}
    assert _spoken("<think>never ends", []) == {"content": "", "thinking": "never ends"}
    assert _spoken("<think>\ud800</think>\udfff", []) == {"content": "?", "thinking": "?"}
    assert _spoken("plain", []) == {"content": "plain", "thinking": ""}
