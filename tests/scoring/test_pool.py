"""Rewards that hang, crash, eat memory or lie: each costs its own sample the score, and nothing else."""

from __future__ import annotations

import asyncio
import os
import pickle
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from builders import make_sample, make_trajectory

from vlrl.config.options import RewardConfig, ScoringConfig
from vlrl.errors import ScoringError
from vlrl.foreign import worker_process
from vlrl.scoring import pool, process, worker
from vlrl.scoring.compose import ComposedReward, RewardFailure
from vlrl.scoring.functions import find_reward
from vlrl.types import Score, Trajectory

PLUG_IN = """
import ctypes, os, re, signal, sys, time
from vlrl.rewards import reward

def does(completion, answer, folder=None):
    if folder:
        open(os.path.join(folder, completion), "w").close()
    if completion == "hang":
        re.match("(a+)+$", "a" * 60 + "b")  # holds the GIL
    if completion == "sleep":
        time.sleep(60)
    if completion == "ignores alarms":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        while True:
            signal.alarm(0)
    if completion == "segfault":
        ctypes.string_at(0)
    if completion == "exit":
        os._exit(3)
    if completion == "quit":
        sys.exit(4)
    if completion == "eat":
        return float(len(bytearray(8 << 30)))
    if completion == "grandchild":
        os.system("sleep 300 &")
        time.sleep(60)
    if completion == "daemon":
        os.system("setsid sleep 20 &")
        os._exit(3)
    if completion == "forked daemon":
        if not os.fork():
            os.setsid()
            time.sleep(10)
            os._exit(0)
        os._exit(3)
    if completion == "print":
        print("to stdout")
    if completion == "recurse":
        return does_deeply(0)
    return float(completion)

def does_deeply(depth):
    return does_deeply(depth + 1)

def who(completion, answer):
    return {"pid": os.getpid(), "cuda_hidden": os.environ["CUDA_VISIBLE_DEVICES"] == "", "hash": hash("a")}

def sees(completion, answer, **context):
    return {"cuda_is_loaded": "torch" in sys.modules, "ray_is_loaded": "ray" in sys.modules}

def once(completion, answer, folder):
    path = os.path.join(folder, completion)
    if os.path.exists(path):
        return 1.0
    open(path, "w").close()
    os._exit(1)

batches = []

@reward(batched=True, batch_size=4)
def batch(completions, answers, level):
    if "hang" in completions:
        time.sleep(60)
    if "raise" in completions:
        raise RuntimeError("one of them")
    return [float(c) + len(answers) * 100 + 10000 * n for c, n in zip(completions, level)]

@reward(batched=True)
def short(completions, answers):
    return [1.0]
"""

LIMITS = ScoringConfig(num_workers=2, timeout_s=1.0, memory_gib=1.0)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "plug_in.py"
    path.write_text(PLUG_IN)
    return path


def trajectories(*completions: str, **metadata: Any) -> list[Trajectory]:
    return [
        make_trajectory(make_sample(id=f"s{i}", answer="", metadata=dict(metadata)), [1], completion=text)
        for i, text in enumerate(completions)
    ]


def score_all(
    name: str, scored: list[Trajectory], scoring: ScoringConfig = LIMITS, **options: Any
) -> list[Score | RewardFailure]:
    with ComposedReward([RewardConfig(name=name, options=options)], scoring=scoring) as reward:
        return asyncio.run(reward.score_all(scored))


@pytest.mark.parametrize(
    ("does", "reason"),
    [
        ("hang", "took longer than 1 s; its process was ended"),
        ("sleep", "took longer than 1 s; its process was ended"),
        ("ignores alarms", "took longer than 1 s; its process was ended"),
        ("segfault", "its process died of SIGSEGV"),
        ("exit", "its process ended with exit code 3"),
        ("daemon", "its process ended with exit code 3"),
        ("forked daemon", "its process ended with exit code 3"),
        ("quit", "SystemExit: 4"),
        ("eat", "MemoryError"),
        ("recurse", "RecursionError: "),
        ("x", "ValueError: could not convert string to float: 'x'"),
    ],
)
def test_what_one_completion_does_costs_no_other_its_score(file: Path, does: str, reason: str) -> None:
    texts = [str(i) for i in range(60)]
    texts[30] = does
    results = score_all(f"{file}:does", trajectories(*texts))
    failed = results.pop(30)
    assert isinstance(failed, RewardFailure)
    assert str(failed).startswith(f"reward 'does', sample 's30': {reason}")
    assert [r.total for r in results if isinstance(r, Score)] == [float(i) for i in range(60) if i != 30]


def test_a_failure_carries_the_traceback_of_the_plug_in(file: Path) -> None:
    (failed,) = score_all(f"{file}:does", trajectories("x"))
    assert isinstance(failed, RewardFailure)
    assert f'File "{file}", line' in failed.trace
    assert "return float(completion)" in failed.trace


def test_many_that_hang_or_crash_all_end(file: Path) -> None:
    texts = ["exit", "1", "segfault", "2", "hang", "exit", "3", "eat"] * 2
    results = score_all(f"{file}:does", trajectories(*texts), LIMITS.model_copy(update={"timeout_s": 0.3}))
    assert [r.total if isinstance(r, Score) else None for r in results] == [
        float(t) if t.isdigit() else None for t in texts
    ]


@pytest.mark.parametrize(
    ("at_import", "limit_s", "reason"),
    [
        ("time.sleep(600)", 1.5, "did not start within 1.5 s"),
        ("os._exit(7)", 300, "ended 3 times while starting: its process ended with exit code 7"),
    ],
)
def test_workers_that_do_not_start_end_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_import: str, limit_s: float, reason: str
) -> None:
    """Not one sample after the other: hundreds of calls would each wait for the whole of the limit."""
    monkeypatch.setattr(pool, "START_LIMIT_S", limit_s)
    path = tmp_path / "bad_start.py"
    path.write_text(
        "import os, sys, time\n"
        "if 'vlrl.scoring.worker' in sys.orig_argv:\n"
        f"    {at_import}\n"
        "def length(completion):\n"
        "    return float(len(completion))\n"
    )
    with pytest.raises(ScoringError, match=reason):
        score_all(f"{path}:length", trajectories(*"abcdefgh" * 20))
    assert not children_of(os.getpid())


def test_a_worker_says_that_it_leaves_before_it_sends_its_last_result(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else the driver gives it the next chunk and blames a call of that for its end."""

    def eat(completion: str) -> float:
        time.sleep(2 * worker.FLUSH_S)
        raise MemoryError

    class Left(Exception):
        pass

    def leave(code: int) -> None:
        raise Left

    class Channel:
        def sendall(self, data: bytes) -> None:
            seen.append(worker.PROGRESS.unpack(page)[0])

    monkeypatch.setattr(os, "_exit", leave)
    page, seen = bytearray(worker.PROGRESS.size), list[int]()
    found = {0: replace(find_reward("answer_exact"), invoke=lambda completion, *_: eat(completion))}
    with pytest.raises(Left):
        calls = [(0, pickle.dumps(("a", "b", {})))] * 3
        worker._serve(Channel(), page, [], found, calls, worker.perform)  # type: ignore[arg-type]
    assert seen == [worker.LEAVING]


def test_a_process_that_cannot_be_killed_does_not_keep_the_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    """One in the kernel's hands (a dead disk, a lost CPU) ends when the kernel lets it."""
    monkeypatch.setattr(worker_process, "KILL_LIMIT_S", 0.2)
    monkeypatch.setattr(os, "killpg", lambda pid, number: os.kill(pid, signal.SIGSTOP))
    stuck = process.RewardProcess([], 2**30)
    deadline = time.monotonic() + 60
    while not (found := children_of(os.getpid())):  # on a busy machine it takes its name a while later
        assert time.monotonic() < deadline
        time.sleep(0.01)
    (pid,) = found
    stuck.kill()
    assert not stuck.alive
    assert is_running(pid)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def test_a_call_is_tried_twice(file: Path, tmp_path: Path) -> None:
    results = score_all(f"{file}:once", trajectories("a", "b"), folder=str(tmp_path))
    assert [r.total for r in results if isinstance(r, Score)] == [1.0, 1.0]


def test_results_do_not_depend_on_the_number_of_workers_or_the_chunks(file: Path) -> None:
    scored = trajectories(*[str(i) for i in range(400)])
    found = [score_all(f"{file}:does", scored, ScoringConfig(num_workers=workers)) for workers in (1, 2, 5)]
    assert found[0] == found[1] == found[2]
    assert [r.total for r in found[0] if isinstance(r, Score)] == [float(i) for i in range(400)]


def test_workers_are_fresh_processes_of_their_own(file: Path) -> None:
    """No fork: what the driver has loaded they have not; sets are in the same order in all of them."""
    assert __import__("torch").__name__ in sys.modules  # the driver has it

    (seen,) = score_all(f"{file}:sees", trajectories("1"))
    assert isinstance(seen, Score)
    assert seen.parts == {"cuda_is_loaded": 0.0, "ray_is_loaded": 0.0}
    parts = [
        r.parts for r in score_all(f"{file}:who", trajectories("1", "2", "3", "4")) if isinstance(r, Score)
    ]
    assert len({p["hash"] for p in parts}) == 1
    assert os.getpid() not in {p["pid"] for p in parts}
    assert all(p["cuda_hidden"] for p in parts)


def test_a_file_in_the_working_folder_hides_no_module_of_the_workers(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pickle.py").write_text("raise ImportError('not this one')")
    monkeypatch.chdir(tmp_path)
    assert [r.total for r in score_all("plug_in.py:does", trajectories("2")) if isinstance(r, Score)] == [2.0]


def test_what_a_reward_prints_does_not_reach_stdout(file: Path, capfd: pytest.CaptureFixture[str]) -> None:
    score_all(f"{file}:does", trajectories("print"))
    assert capfd.readouterr().out == ""


def test_context_that_cannot_be_sent_is_the_failure_of_its_sample(file: Path) -> None:
    scored = trajectories("1", "2", "3")
    scored[1].sample.metadata["folder"] = lambda: 0  # type: ignore[index]
    results = score_all(f"{file}:does", scored)
    assert isinstance(results[1], RewardFailure)
    assert "pickle" in str(results[1])
    assert [r.total for r in results if isinstance(r, Score)] == [1.0, 3.0]


def test_a_batched_reward_is_given_lists_in_order_and_blames_one(file: Path) -> None:
    full = score_all(f"{file}:batch", trajectories(*"0123456", level=2))
    assert [r.total for r in full if isinstance(r, Score)] == [
        *(20400.0 + i for i in range(4)),
        *(20300.0 + i for i in range(4, 7)),
    ]
    for does in ("raise", "hang"):
        results = score_all(f"{file}:batch", trajectories("0", "1", does, "3", "4", level=0))
        assert isinstance(results.pop(2), RewardFailure)
        assert [r.total for r in results if isinstance(r, Score)] == [100.0, 101.0, 103.0, 104.0]


def test_a_batch_of_another_length_is_a_failure(file: Path) -> None:
    results = score_all(f"{file}:short", trajectories("1", "2"))
    assert [r.total for r in results if isinstance(r, Score)] == [1.0, 1.0]  # alone, each is one for one
    wrong = file.with_name("wrong.py")
    wrong.write_text(
        PLUG_IN + "\n@reward(batched=True)\ndef two(completions, answers):\n    return [1.0, 2.0]\n"
    )
    results = score_all(f"{wrong}:two", trajectories("1", "2", "3"))
    assert all("returned 2 values for 1 samples" in str(r) for r in results)


def test_the_pool_serves_event_loop_after_event_loop_and_calls_at_once(file: Path) -> None:
    with ComposedReward([RewardConfig(name=f"{file}:who")], scoring=LIMITS) as reward:

        async def both() -> list[list[Score | RewardFailure]]:
            return await asyncio.gather(*(reward.score_all(trajectories("1", "2")) for _ in range(10)))

        pids = set()
        for _ in range(3):
            for results in asyncio.run(both()):
                pids |= {r.parts["pid"] for r in results if isinstance(r, Score)}
        assert len(pids) <= 2  # the same two workers all along


def children_of(parent: int) -> set[int]:
    """Workers of a process that are running."""
    pids = [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]
    return {
        pid
        for pid in pids
        if is_running(pid) and fields_of(pid)[1] == str(parent) and b"scoring.worker" in command_of(pid)
    }


def fields_of(pid: int) -> list[str]:
    """What /proc says of a process behind its name: state, parent, …; empty if it is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ["", ""]


def command_of(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def is_running(pid: int) -> bool:
    return fields_of(pid)[0] not in ("", "Z")


def test_a_cancelled_pass_and_a_close_leave_no_process(file: Path) -> None:
    with ComposedReward([RewardConfig(name=f"{file}:does")], scoring=LIMITS) as reward:

        async def cut_short() -> None:
            async with asyncio.timeout(0.5):
                await reward.score_all(trajectories("grandchild", "sleep"))

        with pytest.raises(TimeoutError):
            asyncio.run(cut_short())
        assert not children_of(os.getpid())
        assert asyncio.run(reward.score(trajectories("2")[0])).total == 2.0
        assert children_of(os.getpid())
    assert not children_of(os.getpid())


DRIVER = """
import asyncio, sys
from builders import make_sample, make_trajectory
from vlrl.foreign import worker_process
from vlrl.config.options import RewardConfig, ScoringConfig
from vlrl.scoring.compose import ComposedReward
scored = [make_trajectory(make_sample(answer=""), [1], completion=text) for text in ("hang", "sleep")]
config = RewardConfig(name=sys.argv[1], options={"folder": sys.argv[2]})
reward = ComposedReward([config], scoring=ScoringConfig(num_workers=2))
try:
    asyncio.run(reward.score_all(scored))
finally:
    reward.close()
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_workers_die_with_the_driver_whatever_they_are_at(
    file: Path, tmp_path: Path, number: signal.Signals
) -> None:
    helpers = Path(__file__).parents[1] / "helpers"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(helpers), *sys.path])}
    driver = subprocess.Popen(
        [sys.executable, "-c", DRIVER, f"{file}:does", str(tmp_path)],
        env=environment,
        stderr=subprocess.DEVNULL,
    )
    try:
        deadline = time.monotonic() + 60
        while not all((tmp_path / text).exists() for text in ("hang", "sleep")):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        workers = children_of(driver.pid)
        assert len(workers) == 2
    finally:
        driver.send_signal(number)
        driver.wait(30)
    deadline = time.monotonic() + 60
    while any(is_running(pid) for pid in workers):
        assert time.monotonic() < deadline, "a worker outlived its driver"
        time.sleep(0.05)
