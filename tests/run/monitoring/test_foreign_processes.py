"""Processes of environments and rewards that are stopped are named in a silence, with what they are doing."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import pytest
from builders import make_sample, make_trajectory

from vlrl.config.options import RewardConfig
from vlrl.config.rollout import EnvConfig
from vlrl.environment.host.host import EnvHost
from vlrl.foreign.worker_process import waited_for
from vlrl.run.monitoring.silence import SilenceWatch
from vlrl.run.monitoring.waits import Waits
from vlrl.scoring.compose import ComposedReward
from vlrl.types import EnvTask

SLEEPS = """
import os, time
from pathlib import Path

class Sleeps:
    system_prompt, tools = "", ()

    def reset(self, task, seed):
        sleep(task["pid_file"])

def sleep_reward(completion, *, pid_file):
    sleep(pid_file)
    return 1.0

def sleep(pid_file):
    Path(pid_file).write_text(str(os.getpid()))
    time.sleep(600)
"""


async def silences_of(call: Awaitable[object], pid_file: Path, run_dir: Path) -> list[tuple[str, str]]:
    """(text, stacks) that are told while a call waits for its process, which sleeps and then is stopped."""
    task, told = asyncio.ensure_future(call), list[tuple[str, str]]()
    now, progress = [0.0], [0]

    def tell(event: str, text: str) -> None:
        if event == "silence":
            told.append((text, Path(text.rpartition(": ")[2]).read_text()))

    watch = SilenceWatch(
        60.0,
        run_dir,
        Waits(-1, asyncio.get_running_loop(), clock=lambda: now[0]),
        waited_for,
        list,
        lambda: progress[0],
        tell,
        clock=lambda: now[0],
    )

    def stay_silent() -> None:
        progress[0] += 1
        for _ in range(2):
            now[0] += 60.0
            watch.look()

    while not (pid_file.exists() and pid_file.read_text()):
        await asyncio.sleep(0.05)
    pid = int(pid_file.read_text())
    await asyncio.to_thread(stay_silent)
    os.kill(pid, signal.SIGSTOP)
    await asyncio.sleep(0.2)
    await asyncio.to_thread(stay_silent)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    return told


def wait_in_env(file: Path, pid_file: Path) -> Callable[[], Awaitable[object]]:
    async def call() -> object:
        with EnvHost(EnvConfig(isolation="process"), max_open=1) as host:
            env = await host.open(EnvTask(f"{file}:Sleeps", {}, {"pid_file": str(pid_file)}, seed=0))
            return await env.reset()

    return call


def wait_in_reward(file: Path, pid_file: Path) -> Callable[[], Awaitable[object]]:
    async def call() -> object:
        reward = RewardConfig(name=f"{file}:sleep_reward", options={"pid_file": str(pid_file)}, timeout_s=500)
        with ComposedReward([reward]) as rewards:
            return await rewards.score_all([make_trajectory(make_sample(), [7])])

    return call


@pytest.mark.parametrize(
    ("wait", "role", "whom"),
    [(wait_in_env, "process of env", "an environment"), (wait_in_reward, "process of rewards", "a reward")],
    ids=["env", "reward"],
)
def test_a_process_that_is_stopped_is_named(
    wait: Callable[[Path, Path], Callable[[], Awaitable[object]]], role: str, whom: str, tmp_path: Path
) -> None:
    file, pid_file = tmp_path / "sleeps.py", tmp_path / "pid"
    file.write_text(SLEEPS)
    begin = time.monotonic()
    (sleeping, stacks), (stopped, _) = asyncio.run(silences_of(wait(file, pid_file)(), pid_file, tmp_path))
    pid = pid_file.read_text()
    (line,) = [line for line in sleeping.splitlines() if line.startswith(role)]
    assert f"process {pid} sleeps" in line and ": waited for since " in line
    waited_s = int(line.partition("waited for since ")[2].split()[0])  # rounded
    assert waited_s <= round(time.monotonic() - begin)
    (line,) = [line for line in stopped.splitlines() if line.startswith(role)]
    assert line.endswith(f"process {pid} is stopped (state T) and does not answer")
    assert f"waits for {whom}" in sleeping and f"waits for {whom}" in stopped
    assert 'sleeps.py", line' in stacks and "in sleep" in stacks
    assert not waited_for()
