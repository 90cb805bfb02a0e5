"""Environments that raise, hang, crash, eat memory or answer nonsense: each costs its own episode."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import pytest
from hostile_envs import FILE

from vlrl.config.rollout import EnvConfig
from vlrl.environment.host import process
from vlrl.environment.host.failure import EnvFailure
from vlrl.environment.host.host import EnvHost
from vlrl.errors import ConfigError, InternalError, ResourceError
from vlrl.protocols import Observation, StepResult
from vlrl.types import EnvTask

Isolation = Literal["inline", "thread", "process"]
ISOLATIONS: tuple[Isolation, ...] = ("inline", "thread", "process")


def host(
    isolation: Isolation = "process", max_open: int = 2, limit_s: float = 30.0, **config: Any
) -> EnvHost:
    limits = {"reset_timeout_s": limit_s, "step_timeout_s": limit_s}
    return EnvHost(EnvConfig(isolation=isolation, memory_gib=1.0, **{**limits, **config}), max_open=max_open)


def spec(
    seed: int = 0, env: str = "Faulty", options: Mapping[str, Any] | None = None, **task: Any
) -> EnvTask:
    return EnvTask(f"{FILE}:{env}", options or {}, task, seed)


async def play(on: EnvHost, episode: EnvTask, num_steps: int = 2) -> tuple[Observation, list[StepResult]]:
    env = await on.open(episode)
    try:
        return await env.reset(), [await env.step(f"a{i}") for i in range(num_steps)]
    finally:
        await env.close()


async def failure_of(on: EnvHost, episode: EnvTask) -> EnvFailure:
    with pytest.raises(EnvFailure) as caught:
        await play(on, episode)
    return caught.value


@pytest.mark.parametrize("env", ["Faulty", "AsyncFaulty"])
@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_an_episode_is_the_same_wherever_it_is_played(isolation: Isolation, env: str) -> None:
    async def both() -> None:
        seat = await on.open(spec(5, env))
        assert seat.system_prompt == "Count."
        assert seat.tools == [{"type": "function", "function": {"name": "zoom"}}]
        await seat.close()
        await seat.close()
        first, steps = await play(on, spec(5, env))
        assert first.text == "seed 5"
        assert [(s.observation.text, s.reward) for s in steps] == [("a0!", 6.0), ("a1!", 7.0)]
        assert steps[1].info == {"success": True, "state": "2", "same_thread": True}

    with host(isolation) as on:
        asyncio.run(both())


FAULTS = [
    ("raise", "raised", "ValueError: the env is broken"),
    ("quit", "raised", "SystemExit: 4"),
    ("nothing", "raised", "{method} returned None, not {article}"),
]
STEP_FAULTS = [
    ("nothing for nobody", "raised", "step returned a dict, not a StepResult"),
    ("nan", "raised", "step returned reward=nan"),
    ("text reward", "raised", "step returned reward='1.0' is not a number"),
    ("no flag", "raised", "step returned terminated=None, which is not true or false"),
    ("no mapping", "raised", "info is None, not a mapping"),
    ("float image", "raised", "observation.images has an array of shape [2, 2, 3] and type float64; "),
    ("path image", "raised", "observation.images has a str; give arrays or PIL images"),
]
PROCESS_FAULTS = [
    ("sleep", "hung", "took longer than 0.7 s; its process was ended (env.{method}_timeout_s)"),
    ("hold the GIL", "hung", "took longer than 0.7 s"),
    ("exit", "died", "its process ended with exit code 3"),
    ("segfault", "died", "its process died of SIGSEGV"),
    ("eat", "raised", "MemoryError (its process may have env.memory_gib=1)"),
    ("leave a child and exit", "died", "its process ended with exit code 3"),
    ("fork a daemon and exit", "died", "its process ended with exit code 3"),
]


@pytest.mark.parametrize("isolation", ISOLATIONS)
@pytest.mark.parametrize(("what", "kind", "reason"), FAULTS + STEP_FAULTS)
def test_what_is_wrong_is_said(isolation: Isolation, what: str, kind: str, reason: str) -> None:
    with host(isolation) as on:
        failure = asyncio.run(failure_of(on, spec(7, steps={"1": what})))
        assert failure.kind == kind
        said = reason.format(method="step", article="a StepResult")
        assert str(failure).startswith(f"env '{FILE}:Faulty', seed 7, in step 2: {said}")
        assert asyncio.run(play(on, spec(8)))[1][1].reward == 10.0


@pytest.mark.parametrize(("what", "kind", "reason"), FAULTS)
def test_a_reset_and_a_constructor_fail_as_well(what: str, kind: str, reason: str) -> None:
    with host() as on:
        failure = asyncio.run(failure_of(on, spec(reset=what)))
        said = reason.format(method="reset", article="an Observation")
        assert (failure.kind, str(failure).endswith(f"in reset: {said}")) == (kind, True)
        if what != "nothing":
            failure = asyncio.run(failure_of(on, spec(options={"at_start": what})))
            assert (failure.kind, str(failure).endswith(f"when it was made: {reason}")) == (kind, True)


@pytest.mark.parametrize(("what", "kind", "reason"), PROCESS_FAULTS)
def test_a_process_that_hangs_dies_or_eats_memory_is_replaced(what: str, kind: str, reason: str) -> None:
    with host(max_open=1, step_timeout_s=0.7) as on:
        failure = asyncio.run(failure_of(on, spec(steps={"0": what})))
        assert failure.kind == kind
        assert f"in step 1: {reason.format(method='step')}" in str(failure)
        assert asyncio.run(play(on, spec(8)))[1][1].reward == 10.0


@pytest.mark.parametrize(
    ("at_start", "reason"),
    [("os._exit(7)", "its process ended with exit code 7"), ("time.sleep(600)", "took longer than 1 s")],
)
def test_a_process_that_does_not_even_start_ends_the_run(
    at_start: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sitecustomize.py").write_text(f"import os, time\n{at_start}\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(process, "START_LIMIT_S", 1.0)
    with host() as on, pytest.raises(ResourceError, match=f"did not start: {reason}"):
        asyncio.run(on.open(spec()))


def test_a_process_that_is_killed_as_it_starts_gives_way_to_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Short of memory for a moment, the kernel kills whom it likes; a run of days must not end by it."""
    started = tmp_path / "started"
    killed = f"""
import os, signal
with open({str(started)!r}, "a+") as file:
    file.write("x")
    if file.tell() < 3:
        os.kill(os.getpid(), signal.SIGKILL)
"""
    (tmp_path / "sitecustomize.py").write_text(killed)
    monkeypatch.syspath_prepend(tmp_path)
    with host() as on:
        assert asyncio.run(play(on, spec(8)))[1][1].reward == 10.0
    assert started.read_text() == "xxx"


def test_a_failure_has_the_traceback_of_the_environment() -> None:
    with host() as on:
        failure = asyncio.run(failure_of(on, spec(steps={"0": "raise"})))
    assert f'File "{FILE}", line' in failure.trace


@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_what_an_environment_does_to_its_task_is_not_seen_again(isolation: Isolation) -> None:
    with host(isolation) as on:
        episode = spec(spoilt=[])
        for _ in range(2):
            asyncio.run(play(on, episode))


@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_wrong_settings_are_no_failures_of_the_environment(isolation: Isolation) -> None:
    wrong = [
        (EnvTask("visual/nowhere"), "no env is named 'visual/nowhere'"),
        (EnvTask(f"{FILE}:Fauly"), "did you mean 'Faulty'"),
        (spec(options={"levle": 1}), "unexpected keyword argument 'levle'"),
        (spec(reset="wrong task"), "task key 'levle' is unknown; did you mean 'level'?"),
    ]
    with host(isolation) as on:
        for episode, said in wrong:
            with pytest.raises(ConfigError, match=said.replace("?", "[?]")):
                asyncio.run(play(on, episode))


def test_what_cannot_be_sent_to_a_process_is_a_wrong_setting() -> None:
    with host() as on:
        for episode in (spec(options={"level": lambda: 0}), spec(level=lambda: 0)):
            with pytest.raises(ConfigError, match="cannot be sent to a process"):
                asyncio.run(play(on, episode))


@pytest.mark.parametrize("isolation", ["thread", "process"])
def test_a_warm_environment_serves_the_same_options_only(isolation: Isolation) -> None:
    async def served_by(*options: Mapping[str, Any]) -> list[str]:
        return [(await play(on, spec(options=each)))[0].summary for each in options]

    with host(isolation, max_open=1) as on:
        a, b, c, d = asyncio.run(served_by({"level": 1}, {"level": 1}, {"level": 1.0}, {"level": 1}))
        assert a == b
        assert len({b, c, d}) == 3
        assert asyncio.run(served_by({"level": 1})) == [d]  # in another event loop


def test_what_is_kept_makes_room_for_those_that_are_opened_at_once(tmp_path: Path) -> None:
    first, others = spec(options={"closed": str(tmp_path / "closed")}), spec(options={"level": 2})

    async def both_open() -> None:
        seats = await asyncio.gather(on.open(others), on.open(others))
        while not (tmp_path / "closed").exists():
            await asyncio.sleep(0.01)
        for seat in seats:
            await seat.close()

    with host("thread", max_open=2) as on:
        asyncio.run(play(on, first))
        asyncio.run(asyncio.wait_for(both_open(), 20))


@pytest.mark.parametrize("isolation", ["thread", "process"])
def test_an_environment_that_failed_serves_no_other_episode(isolation: Isolation) -> None:
    async def served_by() -> str:
        return (await play(on, spec()))[0].summary

    with host(isolation, max_open=1) as on:
        first = asyncio.run(served_by())
        asyncio.run(failure_of(on, spec(steps={"1": "raise"})))
        assert asyncio.run(served_by()) != first


def test_options_that_cannot_be_compared_are_served_in_threads_by_an_environment_each() -> None:
    async def served_by() -> str:
        return (await play(on, spec(options={"level": lambda: 1})))[0].summary

    with host("thread", max_open=1) as on:
        assert asyncio.run(served_by()) != asyncio.run(served_by())


@pytest.mark.parametrize("num_slots", [1, 3])
@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_no_more_are_open_than_there_are_places(isolation: Isolation, num_slots: int) -> None:
    """Those that wait are served in their order; who is cancelled while waiting takes no place."""
    order: list[int] = []
    num_open = 0

    async def episode(number: int) -> None:
        nonlocal num_open
        env = await on.open(spec(number))
        num_open += 1
        order.append(number)
        assert num_open <= num_slots
        await env.reset()
        await asyncio.sleep(0)
        num_open -= 1
        await env.close()

    async def many() -> None:
        tasks = [asyncio.create_task(episode(number)) for number in range(20)]
        await asyncio.sleep(0)
        tasks[10].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    with host(isolation, 20 if isolation == "process" else num_slots, num_processes=num_slots) as on:
        asyncio.run(many())
    assert num_open == 0
    served = [number for number in range(20) if number != 10]
    assert (order if num_slots == 1 else sorted(order)) == served


@pytest.mark.parametrize("env", ["Faulty", "AsyncFaulty"])
@pytest.mark.parametrize("isolation", ["thread", "process"])
def test_an_episode_cancelled_in_the_middle_of_a_step_frees_its_place(
    isolation: Isolation, env: str, tmp_path: Path
) -> None:
    async def cancelled() -> None:
        for seed in (1, 2):
            sleeping = spec(seed, env, steps={"0": "sleep"}, folder=str(tmp_path))
            playing = asyncio.create_task(play(on, sleeping))
            while not list(tmp_path.glob(f"{seed}-*")):
                await asyncio.sleep(0.01)
            playing.cancel()
            with pytest.raises(asyncio.CancelledError):
                await playing
        assert (await play(on, spec(3, env)))[1][1].reward == 5.0

    with host(isolation, max_open=1) as on:
        asyncio.run(cancelled())


@pytest.mark.parametrize("isolation", ["thread", "process"])
def test_closing_the_host_ends_what_is_under_way(isolation: Isolation, tmp_path: Path) -> None:
    async def closed() -> None:
        task = {"steps": {"0": "sleep"}, "folder": str(tmp_path)}
        playing = asyncio.create_task(failure_of(on, spec(**task)))
        env = await on.open(spec())
        waiting = asyncio.create_task(on.open(spec()))
        await asyncio.sleep(0)
        while not list(tmp_path.iterdir()):
            await asyncio.sleep(0.01)
        on.close()
        on.close()
        assert (await playing).kind == "died"
        with pytest.raises(InternalError, match="closed while one was waited for"):
            await waiting
        await env.close()
        with pytest.raises(InternalError, match="after its host had been closed"):
            await on.open(spec())

    on = host(isolation)
    asyncio.run(closed())


def test_threads_that_hang_are_left_behind_and_keep_no_slot() -> None:
    async def hang() -> None:
        failures = await asyncio.gather(*(failure_of(on, spec(steps={"0": "sleep"})) for _ in range(3)))
        assert {f.kind for f in failures} == {"hung"}
        assert "took longer than 0.2 s (env.step_timeout_s)" in str(failures[0])

    with host("thread", max_open=2, step_timeout_s=0.2) as on:
        asyncio.run(hang())
        assert asyncio.run(play(on, spec(8)))[1][1].reward == 10.0


@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_an_async_environment_that_hangs_is_given_up(isolation: Isolation) -> None:
    async def hang() -> EnvFailure:
        failure = await failure_of(on, spec(env="AsyncFaulty", steps={"0": "sleep"}))
        assert asyncio.all_tasks() == {asyncio.current_task()}
        return failure

    with host(isolation, step_timeout_s=0.3) as on:
        assert asyncio.run(hang()).kind == "hung"


@pytest.mark.parametrize("isolation", ["thread", "process"])
def test_an_event_loop_that_was_busy_itself_blames_no_environment(isolation: Isolation) -> None:
    """Its clocks have run out when it looks again, and the answers, of several frames, are waiting."""

    async def busy() -> None:
        options = {"size": [1000, 1000]}
        async with asyncio.TaskGroup() as group:
            seats = [await on.open(spec(env="Images", options=options)) for _ in range(2)]
            for seat in seats:
                await seat.reset()
            steps = [group.create_task(seat.step("7")) for seat in seats]
            await asyncio.sleep(0)
            time.sleep(1.0)
        for step in steps:
            assert (step.result().observation.images[0] == 7).all()
        for seat in seats:
            await seat.close()

    with host(isolation, step_timeout_s=0.5) as on:
        asyncio.run(busy())


def test_environments_are_closed_when_they_are_done_with(tmp_path: Path) -> None:
    """They are closed after an episode or with the host, also if they raised, but not if they were killed."""
    for isolation in ISOLATIONS:
        file = tmp_path / isolation
        with host(isolation) as on:
            for task in ({}, {"steps": {"0": "raise"}}, {}):
                episode = spec(options={"closed": str(file)}, **task)
                asyncio.run(failure_of(on, episode) if task else play(on, episode))  # type: ignore[arg-type]
        closed = len(file.read_text().split())
        assert closed == (3 if isolation == "inline" else 2), isolation


@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_an_environment_is_told_that_its_episode_is_over(isolation: Isolation, tmp_path: Path) -> None:
    """It may hold what others wait for. One that fails there is not kept; its episode stands."""

    def episode(seed: int, **task: Any) -> EnvTask:
        return spec(seed, "EndsEpisodes", notes=str(tmp_path / "notes"), **task)

    with host(isolation, max_open=1) as on:
        first, steps = asyncio.run(play(on, episode(1)))
        with pytest.warns(UserWarning, match=r"seed 2, in end_episode: ValueError: the env is broken"):
            _, stands = asyncio.run(play(on, episode(2, end="raise")))
        last, _ = asyncio.run(play(on, episode(3)))
        asyncio.run(failure_of(on, episode(4, steps={"0": "raise"})))
    assert [len(steps), len(stands)] == [2, 2]
    assert last.summary != first.summary
    assert (tmp_path / "notes").read_text().split() == ["1", "2", "3"]


def test_what_an_environment_prints_does_not_reach_stdout(capfd: pytest.CaptureFixture[str]) -> None:
    with host() as on:
        asyncio.run(play(on, spec()))
    captured = capfd.readouterr()
    assert captured.out == ""
    assert captured.err == "an env that prints\n" * 2


def test_nothing_blocks_the_end_of_the_process(tmp_path: Path) -> None:
    """A thread that hangs does not; and workers die with a driver that is killed, or that closes nothing."""
    code = f"""
import asyncio, sys
from vlrl.environment.host.host import EnvHost
from vlrl.config.rollout import EnvConfig
from vlrl.types import EnvTask

async def main():
    task = {{"steps": {{"0": "sleep"}}, "folder": {str(tmp_path)!r}}}
    env = await host.open(EnvTask("{FILE}:Faulty", {{}}, task, sys.argv[2]))
    await env.reset()
    async with asyncio.timeout(None if sys.argv[3] == "wait" else 1):
        await env.step("a")

host = EnvHost(EnvConfig(isolation=sys.argv[1]), max_open=1)
asyncio.run(main())
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}

    def driver(*arguments: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-c", code, *arguments]
        return subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)

    assert driver("thread", "a", "1").wait(60) == 1
    assert driver("process", "b", "1").wait(60) == 1
    killed = driver("process", "c", "wait")
    deadline = time.monotonic() + 60
    while not (begun := list(tmp_path.glob("c-*"))):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    killed.send_signal(signal.SIGKILL)
    killed.wait(30)
    for name in [*tmp_path.glob("b-*"), *begun]:
        while is_running(int(name.name.partition("-")[2])):
            assert time.monotonic() < deadline, "a worker outlived its driver"
            time.sleep(0.05)


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
