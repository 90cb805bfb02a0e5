"""Web environments where a run has them: in threads that come and go, and behind `vlrl env serve`."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest
from serving import TOKEN, serving

from vlrl.config.rollout import EnvConfig
from vlrl.environment.host.host import EnvHost
from vlrl.environment.open import open_env
from vlrl.envs.gui.web.chromium import browser
from vlrl.types import EnvTask

AT_ONCE = 8
TASKS = {"folder": str(Path(__file__).resolve().parents[4] / "examples" / "web_tasks")}


@pytest.fixture(autouse=True)
def no_browser_before() -> None:
    """The browser has to be started by one of the threads, whichever comes first."""
    browser.close_idle()


async def played(host: EnvHost, seed: int) -> int:
    """Steps of an episode, which is as long as its seed says: the first thread ends while others play."""
    env = await host.open(EnvTask("gui/web", TASKS, {}, seed))
    await env.reset()
    for step in range(seed + 1):
        await env.step("click(x=20, y=20)")
        assert step < 10
    await env.close()
    return seed + 1


def test_parallel_episodes_in_threads() -> None:
    async def play() -> list[int | BaseException]:
        with EnvHost(EnvConfig(isolation="thread"), max_open=AT_ONCE) as host:
            first = await played(host, 0)  # its thread, which started the browser, is over
            return [first, *await asyncio.gather(*(played(host, n) for n in range(AT_ONCE)))]

    assert asyncio.run(play()) == [1, *range(1, AT_ONCE + 1)]


def test_parallel_episodes_behind_a_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VLRL_ENV_TOKEN", TOKEN)
    steps: dict[int, int] = {}
    with serving("gui/web", TASKS, config=EnvConfig(isolation="thread")) as url:

        def play(seed: int) -> None:
            env: Any = open_env("remote", {"url": url})
            env.reset({}, seed)
            steps[seed] = sum(env.step("click(x=20, y=20)").info["num_steps"] > 0 for _ in range(seed + 1))
            env.close()

        threads = [threading.Thread(target=play, args=(seed,)) for seed in range(AT_ONCE)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert steps == {seed: seed + 1 for seed in range(AT_ONCE)}


def test_the_browser_outlives_the_thread_that_started_it() -> None:
    made: list[browser.Browser] = []
    starter = threading.Thread(target=lambda: made.append(browser.take("require", 1.0)))
    starter.start()
    starter.join()
    made[0].pipe.send("Browser.getVersion").result(10)
    assert made[0].alive
    browser.give_back(made[0])
