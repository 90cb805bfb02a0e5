"""Members of a Gymnasium vector environment: each plays the episode that it would play alone."""

from __future__ import annotations

import asyncio
import multiprocessing
import threading
from collections.abc import Coroutine
from typing import Any, ClassVar, TypeVar

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from open_files import left_open, open_files

from vlrl.config.rollout import EnvConfig
from vlrl.environment.host.failure import EnvFailure
from vlrl.environment.host.host import EnvHost
from vlrl.environment.open import open_env
from vlrl.errors import ConfigError
from vlrl.types import EnvTask

T = TypeVar("T")


class Counted(gymnasium.Env[Any, Any]):
    """Counts the calls of all its copies; raises or blocks when told to."""

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["rgb_array"], "render_fps": 1}
    num_steps = 0
    calls: ClassVar[list[str]] = []
    gate = threading.Event()

    def __init__(self, render_mode: str | None = None) -> None:
        self.render_mode = render_mode
        self.action_space = spaces.Discrete(4, start=1)
        self.observation_space = spaces.Discrete(1000)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.at = (options or {}).get("at", 0)
        self.calls.append("reset")
        return self.at, {}

    def step(self, action: Any) -> Any:
        self.calls.append("step")
        if action == 2:
            raise ValueError("a broken world")
        if action == 3:
            self.gate.wait()
        self.at += 1
        return self.at, 0.25, action == 4, False, {"seen": self.at}

    def render(self) -> Any:
        return np.full((2, 2, 3), self.at, np.uint8)


@pytest.fixture(autouse=True)
def _registered() -> Any:
    gymnasium.register("vlrl-test/Counted-v0", Counted)
    Counted.calls.clear()
    Counted.gate.clear()
    yield
    Counted.gate.set()
    del gymnasium.registry["vlrl-test/Counted-v0"]


def act(word: Any) -> str:
    return f"<action>{word}</action>"


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(coroutine)


def member(id: str, **options: Any) -> Any:
    return open_env("gymnasium_vector", {"id": id, "mode": "sync", **options})


def fingerprint(result: Any) -> Any:
    image = result.observation.images[0].tobytes()
    return result.reward, result.terminated, result.truncated, dict(result.info), image


def alone(options: dict[str, Any], seed: int, rng_seed: int) -> list[Any]:
    """The single environment's episode."""
    env: Any = open_env("gymnasium", options)
    steps, rng = [env.reset({}, seed).images[0].tobytes()], np.random.default_rng(rng_seed)
    while True:
        result = env.step(env.random_action(rng))
        steps.append(fingerprint(result))
        if result.terminated or result.truncated:
            env.close()
            return steps


async def together(env: Any, seed: int, rng_seed: int, lag_s: float) -> list[Any]:
    first = await env.reset({}, seed)
    steps, rng = [first.images[0].tobytes()], np.random.default_rng(rng_seed)
    while True:
        await asyncio.sleep(lag_s)
        result = await env.step(env.random_action(rng))
        steps.append(fingerprint(result))
        if result.terminated or result.truncated:
            return steps


@pytest.mark.parametrize(
    ("options", "num_envs", "lag_s", "mode"),
    [
        ({"id": "CartPole-v1", "kwargs": {"max_episode_steps": 9}}, 3, 0.0, "sync"),
        ({"id": "FrozenLake-v1"}, 3, 0.0, "sync"),
        ({"id": "FrozenLake-v1"}, 3, 0.003, "sync"),  # slow members are not waited for
        ({"id": "MountainCarContinuous-v0", "kwargs": {"max_episode_steps": 9}}, 2, 0.0, "sync"),
        ({"id": "FrozenLake-v1"}, 2, 0.0, "async"),
    ],
)
def test_each_member_s_episode_is_the_single_environment_s(
    options: Any, num_envs: int, lag_s: float, mode: str
) -> None:
    """Five members share vector environments of fewer slots, and play two episodes after one another."""

    async def all_members() -> list[Any]:
        envs = [member(**options, num_envs=num_envs, wait_s=0.001, mode=mode) for _ in range(5)]

        async def play(env: Any, number: int) -> list[Any]:
            episodes = [
                await together(env, seed, seed + 50, number * lag_s) for seed in (number, number + 10)
            ]
            await env.close()
            await env.close()
            return episodes

        return await asyncio.gather(*(play(env, number) for number, env in enumerate(envs)))

    played = run(all_members())
    for number, episodes in enumerate(played):
        for seed, episode in zip((number, number + 10), episodes, strict=True):
            assert episode == alone(options, seed, seed + 50)
    assert not multiprocessing.active_children()


@pytest.mark.parametrize("isolation", ["inline", "thread", "process"])
def test_a_host_s_members_are_the_single_environments_too(isolation: Any) -> None:
    options = {"id": "FrozenLake-v1", "num_envs": 2, "mode": "sync"}

    async def play(host: EnvHost, seed: int) -> list[Any]:
        env = await host.open(EnvTask("gymnasium_vector", options, {}, seed))
        steps, rng = [(await env.reset()).images[0].tobytes()], np.random.default_rng(seed)
        while not (len(steps) > 1 and (steps[-1][1] or steps[-1][2])):
            steps.append(fingerprint(await env.step(act(rng.integers(4)))))
        await env.close()
        return steps

    async def all_members() -> list[Any]:
        with EnvHost(EnvConfig(isolation=isolation, num_processes=1), max_open=3) as host:
            return await asyncio.gather(*(play(host, seed) for seed in range(4)))

    for seed, episode in enumerate(run(all_members())):
        assert episode == alone({"id": "FrozenLake-v1"}, seed, seed)


def test_the_actions_of_all_are_one_call() -> None:
    async def play() -> int:
        envs = [member("vlrl-test/Counted-v0", num_envs=4, wait_s=60) for _ in range(4)]
        await asyncio.gather(*(env.reset({"options": {"at": 7}}, 1) for env in envs))
        server = envs[0]._slot[0]
        assert all(env._slot[0] is server for env in envs)
        calls: list[Any] = []
        one_step = server._vector.step
        server._vector.step = lambda actions: calls.append(actions) or one_step(actions)
        results = await asyncio.gather(*(env.step(act(1)) for env in envs))
        assert [r.info["seen"] for r in results] == [8] * 4
        await envs[3].close()  # those who are gone are not waited for
        await asyncio.gather(*(env.step(act(1)) for env in envs[:3]))
        ended = await asyncio.gather(
            *(env.step(act(4)) for env in envs[:1]), *(e.step(act(1)) for e in envs[1:3])
        )
        assert [r.terminated for r in ended] == [True, False, False]
        await asyncio.gather(*(env.step(act(1)) for env in envs[1:3]))  # nor those whose episode has ended
        await asyncio.gather(*(env.close() for env in envs))
        return [len(actions) for actions in calls]

    assert run(play()) == [4, 3, 3, 2]
    assert (Counted.calls.count("reset"), Counted.calls.count("step")) == (4, 12)


def test_one_that_comes_later_is_waited_for() -> None:
    async def play() -> list[int]:
        envs = [member("vlrl-test/Counted-v0", num_envs=2, wait_s=60) for _ in range(2)]
        await asyncio.gather(*(env.reset({}, 1) for env in envs))
        vector, calls = envs[0]._slot[0]._vector, []
        one_step = vector.step
        vector.step = lambda actions: calls.append(len(actions)) or one_step(actions)
        early = asyncio.create_task(envs[0].step(act(1)))
        await asyncio.sleep(0.05)
        assert not early.done()
        await asyncio.gather(early, envs[1].step(act(1)))
        await asyncio.gather(*(env.close() for env in envs))
        return calls

    assert run(play()) == [2]


def test_who_does_not_come_is_not_waited_for_and_not_moved() -> None:
    async def play() -> None:
        one, other = (member("vlrl-test/Counted-v0", num_envs=2, wait_s=0.001) for _ in range(2))
        await asyncio.gather(one.reset({}, 1), other.reset({}, 2))
        for expected in (1, 2, 3):
            assert (await one.step(act(1))).info["seen"] == expected
        invalid = await other.step("nothing")
        assert invalid.info["invalid"] is True
        assert (await other.step(act(1))).info["seen"] == 1
        await one.close()
        await other.close()

    run(play())


def test_a_failure_is_everybody_s_and_the_next_members_get_a_new_one() -> None:
    async def play() -> None:
        envs = [member("vlrl-test/Counted-v0", num_envs=2, wait_s=60) for _ in range(2)]
        await asyncio.gather(*(env.reset({}, 1) for env in envs))
        results = await asyncio.gather(envs[0].step(act(2)), envs[1].step(act(1)), return_exceptions=True)
        assert [type(result) for result in results] == [EnvFailure, EnvFailure]
        assert "a broken world" in str(results[0])
        with pytest.raises(EnvFailure, match="given up"):
            await envs[1].step(act(1))
        fresh = member("vlrl-test/Counted-v0", num_envs=2, wait_s=60)
        await fresh.reset({}, 1)
        assert (await fresh.step(act(1))).info["seen"] == 1
        await asyncio.gather(*(env.close() for env in [*envs, fresh]))

    run(play())


def test_one_that_hangs_is_left_behind() -> None:
    async def play() -> None:
        envs = [member("vlrl-test/Counted-v0", num_envs=3, wait_s=0.001) for _ in range(2)]
        await asyncio.gather(*(env.reset({}, 1) for env in envs))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(envs[0].step(act(3)), 0.1)
        waiting = asyncio.create_task(envs[1].step(act(1)))
        await asyncio.sleep(0.01)
        await envs[0].close()
        with pytest.raises(EnvFailure, match="left during a call"):
            await waiting
        await envs[1].close()
        fresh = member("vlrl-test/Counted-v0", num_envs=3)
        await fresh.reset({}, 1)
        await fresh.close()

    run(play())


def test_nothing_is_left_after_the_last_member() -> None:
    async def play(mode: str) -> None:
        env = member("FrozenLake-v1", num_envs=2, mode=mode)
        await env.reset({}, 1)
        await env.close()

    run(play("async"))  # what Python keeps for starting processes stays
    before = open_files()
    for mode in ("async", "sync"):
        run(play(mode))
    for thread in threading.enumerate():
        if thread.name == "vector env FrozenLake-v1":
            thread.join(10)
            assert not thread.is_alive()
    assert left_open(before) == {}
    assert not multiprocessing.active_children()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"mode": "vector_entry_point"}, "sync or async"),
        ({"num_envs": 0}, "num_envs=0"),
        ({"wait_s": -1}, "wait_s=-1"),
        ({"id": "Nowhere-v0"}, "Nowhere"),
        ({"kwargs": {"speed": 1}}, "speed"),
        ({"actions": ["left"]}, "a list names every action"),
    ],
)
def test_a_wrong_option_is_named(options: Any, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        open_env("gymnasium_vector", {"id": "CartPole-v1", **options})


def test_gymnasium_s_checker_is_asked_of_the_sub_environment() -> None:
    assert not [finding for finding in member("FrozenLake-v1").findings() if "Error" in finding]
