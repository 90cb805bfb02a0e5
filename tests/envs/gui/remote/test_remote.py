"""The environment `remote` and `vlrl env serve`: the same pixels, and no failure is ever a result."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import toy_desktop
from faulty_http import proxy
from serving import COUNTING, TOKEN, serving

from vlrl.config.rollout import EnvConfig
from vlrl.coordinates import Canvas
from vlrl.environment.host.failure import EnvFailure
from vlrl.environment.host.host import EnvHost
from vlrl.environment.observe import message_of
from vlrl.environment.open import open_env
from vlrl.errors import ConfigError
from vlrl.registry import BUILT_IN
from vlrl.types import EnvTask

DEADLINES = {"connect_s": 5.0, "health_s": 10.0, "reset_s": 20.0, "step_s": 20.0, "close_s": 2.0}
# These ask for a package, a server or options of their own; pettingzoo's shape is tried below by another one.
LOCAL = [name for name in BUILT_IN["envs"] if name.startswith("visual/")]


@pytest.fixture(autouse=True)
def token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VLRL_ENV_TOKEN", TOKEN)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with serving() as address:
        yield address


def remote(url: str, **options: Any) -> Any:
    return open_env("remote", {"url": url, "deadlines": DEADLINES, **options})


def same(here: Any, there: Any) -> bool:
    return repr(plain(here)) == repr(plain(there))


def plain(observation: Any) -> Any:
    parts = message_of(observation)["content"]
    images = [*observation.images, *(frame for video in observation.videos for frame in video.frames)]
    return [
        [part for part in parts if part["type"] == "text"],
        observation.summary,
        [video.fps for video in observation.videos],
        [(np.asarray(each).shape, np.asarray(each).tobytes()) for each in images],
    ]


@pytest.mark.parametrize("name", LOCAL)
def test_every_environment_is_the_same_there_to_the_pixel(name: str) -> None:
    with serving(name) as url:
        here = open_env(name, {})
        with closing(remote(url, images="raw" if LOCAL.index(name) % 2 else "png")) as there:
            assert there.system_prompt == getattr(here, "system_prompt", "")
            assert list(there.tools) == list(getattr(here, "tools", ()))
            assert same(here.reset({}, 5), there.reset({}, 5))
            for turn in range(2):
                action = here.oracle() if turn else "no action at all"
                mine, theirs = here.step(action), there.step(action)
                assert same(mine.observation, theirs.observation)
                assert (mine.reward, mine.terminated, mine.truncated) == (
                    theirs.reward,
                    theirs.terminated,
                    theirs.truncated,
                )
                assert {**mine.info}.get("success") == theirs.info.get("success")
                if mine.terminated or mine.truncated:
                    break
        here.close()


def test_steps_and_resets_and_what_was_seen(url: str) -> None:
    env = remote(url, env=COUNTING, options={})
    assert env.system_prompt == "Count."
    assert env.reset({}, 0).text == "0"
    env.seen([Canvas((6, 8), (28, 56), "relative_1000")])
    first = env.step("a")
    assert "relative_1000" in first.info["canvases"] and "(28, 56)" in first.info["canvases"]
    assert env.step("b").observation.text == "2"
    assert env.reset({}, 0).text == "0", "a second episode begins again"
    env.close()
    env.close()


@pytest.mark.parametrize("fault", ["lost", "cut", "drop"])
@pytest.mark.parametrize("path", ["/sessions", "/env"])
def test_an_answer_that_is_lost_is_asked_for_again_and_the_step_is_made_once(
    url: str, fault: Any, path: str
) -> None:
    with proxy(lambda: url) as between:
        between.faults = [("/env", fault)] if path == "/env" else []
        env = remote(between.url)
        between.faults = [("/sessions", fault)]
        assert env.reset({}, 0).text == "0"
        between.faults = [("/sessions", fault), ("/sessions", fault)]
        result = env.step("a")
        assert (result.observation.text, result.reward) == ("1", 0.1)
        assert env.step("b").observation.text == "2", "no step was made twice"
        env.close()


@pytest.mark.parametrize("fault", ["slow", "trickle"])
def test_an_answer_that_is_late_is_a_failure(url: str, fault: Any) -> None:
    with proxy(lambda: url) as between:
        env = remote(between.url, deadlines={"step_s": 0.5})
        env.reset({}, 0)
        between.faults = [("/sessions", fault)]
        with pytest.raises(EnvFailure, match=r"POST .*step") as failed:
            env.step("a")
        assert failed.value.kind == "hung"
        env.close()


@pytest.mark.parametrize(("fault", "reason"), [("500", "500"), ("half", "not an answer")])
def test_a_wrong_answer_is_a_failure(url: str, fault: Any, reason: str) -> None:
    with proxy(lambda: url) as between:
        env = remote(between.url)
        env.reset({}, 0)
        between.faults = [("/sessions", fault)] * 3
        with pytest.raises(EnvFailure, match=reason):
            env.step("a")
        env.close()


def test_a_server_that_was_started_anew_does_not_go_on_with_an_episode() -> None:
    with ExitStack() as stack:
        upstream = [stack.enter_context(serving())]
        between = stack.enter_context(proxy(lambda: upstream[0]))
        env = remote(between.url)
        env.reset({}, 0)
        env.step("a")
        upstream[0] = stack.enter_context(serving())
        with pytest.raises(EnvFailure, match="it was restarted") as failed:
            env.step("b")
        assert failed.value.kind == "died"
        assert env.reset({}, 0).text == "0", "the next episode may begin there"
        env.close()


def test_a_server_that_is_gone_and_one_that_never_was(url: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, not listening: refused
        nowhere = f"http://127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(EnvFailure, match="no server answers there"):
            remote(nowhere)
        with proxy(lambda: url) as between:
            env = open_env("remote", {"urls": [nowhere, between.url], "deadlines": DEADLINES})
            assert env.reset({}, 0).text == "0", "the other one is taken"
            between.faults = [("/sessions", "drop")] * 3
            with pytest.raises(EnvFailure, match="broke before the answer") as failed:
                env.step("a")
            assert failed.value.kind == "died"
        env.close()


def test_failures_of_the_environment_are_told_as_they_were(url: str) -> None:
    env = remote(url)
    with pytest.raises(EnvFailure, match="no world today") as failed:
        env.reset({"raise": True}, 0)
    assert failed.value.kind == "raised"
    env.reset({}, 7)
    with pytest.raises(EnvFailure, match="seed 7, in step 1: RuntimeError: broke"):
        env.step("raise")
    env.close()


def test_a_wrong_token_and_a_wrong_environment_are_wrong_settings(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ConfigError, match=r"visual/mazes.*is wanted"):
        remote(url, env="visual/mazes")
    with pytest.raises(ConfigError, match="options"):
        remote(url, options={"level": 2})
    for wrong in ("", "wrong"):
        monkeypatch.setenv("VLRL_ENV_TOKEN", wrong)
        with pytest.raises(ConfigError, match="VLRL_ENV_TOKEN"):
            remote(url)
    for options in ({}, {"url": "ftp://x"}, {"url": url, "urls": [url]}, {"urls": url}):
        with pytest.raises(ConfigError):
            open_env("remote", options)
    with pytest.raises(ConfigError, match="stepp_s"):
        remote(url, deadlines={"stepp_s": 1})


def test_a_silent_client_loses_its_environment_and_is_told_why() -> None:
    with serving(lease_s=0.2, max_sessions=1) as url, closing(remote(url)) as env:
        env.reset({}, 0)
        with closing(remote(url)) as other:
            until = time.monotonic() + 60
            while not (is_free := begins(other)) and time.monotonic() < until:
                time.sleep(0.02)
            assert is_free, "the only environment serves another client"
        with pytest.raises(EnvFailure, match=r"lease of 0\.2 s expired"):
            env.step("a")


def begins(env: Any) -> bool:
    try:
        env.reset({}, 0)
    except EnvFailure as failure:
        assert "--max-sessions" in str(failure)
        return False
    return True


def test_sessions_are_limited_and_episodes_spread_over_servers() -> None:
    with serving(max_sessions=1) as first, serving(max_sessions=1) as second:
        envs = [open_env("remote", {"urls": [first, second], "deadlines": DEADLINES}) for _ in range(3)]
        for env in envs[:2]:
            assert env.reset({}, 0).text == "0"
        with pytest.raises(EnvFailure, match=r"--max-sessions.*; .*--max-sessions"):
            envs[2].reset({}, 0)
        envs[0].close()
        assert envs[2].reset({}, 0).text == "0", "there is room again"
        for env in envs:
            env.close()


@pytest.mark.parametrize("isolation", ["thread", "process"])
def test_an_environment_that_is_kept_for_another_episode_keeps_no_session(isolation: Any) -> None:
    """A run that evaluates with other options would else wait for what its own idle environments hold."""

    async def play(host: EnvHost) -> None:
        for options in ({"images": "raw"}, {"images": "png"}, {"images": "raw"}):
            env = await host.open(EnvTask("remote", {"url": url, "deadlines": DEADLINES, **options}, {}, 5))
            assert (await env.reset()).text == "0"
            await env.close()

    with serving(max_sessions=1) as url, EnvHost(EnvConfig(isolation=isolation), max_open=3) as host:
        asyncio.run(play(host))


def test_two_urls_must_serve_the_same(url: str) -> None:
    with serving(options={"name": "b"}) as other, pytest.raises(ConfigError, match="different"):
        open_env("remote", {"urls": [url, other]})


def test_a_screen_is_clicked_where_the_model_saw_it() -> None:
    toy = f"{Path(toy_desktop.__file__)}:ToyEnv"
    with serving(toy) as url, closing(remote(url)) as there:
        here = open_env(toy, {})
        task = {"kind": "click"}
        for env in (here, there):
            shown = env.reset(task, 3)
            height, width = np.asarray(shown.images[0]).shape[:2]
            env.seen([Canvas((height, width), (2 * height, 2 * width), "resized_pixels")])
        action = here.oracle()
        mine, theirs = here.step(action), there.step(action)
        assert same(mine.observation, theirs.observation)
        assert (theirs.reward, theirs.info["point"]) == (1.0, mine.info["point"])


def test_a_run_plays_a_failed_episode_again_from_its_seed(url: str) -> None:
    """Law 7 at the host of environments: it fails as what it is, and the same seed begins again."""

    async def play() -> None:
        with proxy(lambda: url) as between, EnvHost(EnvConfig(), max_open=1) as host:
            task = EnvTask("remote", {"url": between.url, "deadlines": DEADLINES}, {}, 5)
            env = await host.open(task)
            await env.reset()
            between.faults = [("/sessions", "drop")] * 3
            with pytest.raises(EnvFailure, match=r"env 'remote', seed 5, in step 1: POST") as failed:
                await env.step("a")
            assert failed.value.kind == "died"
            await env.close()
            again = await host.open(task)
            assert (await again.reset()).text == "0"
            assert (await again.step("a")).reward == 0.1
            await again.close()

    asyncio.run(play())
