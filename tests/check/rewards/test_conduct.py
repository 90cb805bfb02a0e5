"""What a reward does beside returning: to its arguments, to batches, to the event loop, to the command."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from vlrl.check.rewards.check import RewardCheck
from vlrl.check.rewards.checks import run_checks
from vlrl.check.rewards.misplaced import misplaced
from vlrl.check.rewards.samples import built_in_sets
from vlrl.check.rewards.trial import run_trial
from vlrl.scoring.functions import find_reward

REWARDS = """
import asyncio, os, socket, subprocess, sys, threading, time
from vlrl.rewards import reward
from vlrl.scoring.author import Scored

def right(completion, answer):
    return float(completion == answer)

@reward(range=(0, 1))
def changes(completion, answer, *, choices):
    score = float(completion == answer and len(choices) == 3)
    choices.append("seen")
    return score

@reward(range=(0, 1), batched=True)
def too_few(completions, answers):
    scores = [float(c == a) for c, a in zip(completions, answers)]
    return scores[:-1] if len(scores) > 1 else scores

@reward(range=(0, 1))
async def blocks(completion, answer):
    time.sleep(0.4)
    return float(completion == answer)

@reward(range=(0, 1))
async def waits(completion, answer):
    await asyncio.sleep(0.001)
    return float(completion == answer)

@reward(range=(0, 1))
async def hangs(completion, answer):
    if completion == "":
        time.sleep(3000)
    return float(completion == answer)

@reward(range=(0, 1))
def exits(completion, answer):
    if completion == ".":
        os._exit(0)
    return float(completion == answer)

@reward(range=(0, 1))
def leaves(completion, answer):
    if completion == answer:
        threading.Thread(target=time.sleep, args=(3000,), name="left-1").start()
        open(OUT, "w").close()
        subprocess.run(["true"])
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.sendto(b"", ("127.0.0.1", 9))
    return float(completion == answer)

@reward(range=(0, 1))
def somewhere(completion, answer):
    return float("click" in completion and answer["action"] == "click" or completion == str(answer))

@reward(range=(0, 1))
def left_half(completion, answer, *, canvases):
    from vlrl.parsing.places import one_box
    return 0.0
"""

SMALL = built_in_sets()["text"][:2]


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    file = tmp_path / "mine.py"
    file.write_text(f"OUT = {str(tmp_path / 'written.txt')!r}\n{REWARDS}")
    return file


def checks_of(file: Path, name: str, samples: Any = SMALL, timeout_s: float = 20.0) -> dict[str, RewardCheck]:
    function = find_reward(f"{file}:{name}")
    trial = run_trial(function, samples, "", timeout_s=timeout_s, seed=0, limit=4)
    return {check.name: check for check in run_checks(trial)}


def test_arguments_that_are_changed_are_found(mine: Path) -> None:
    choices = [sample for sample in built_in_sets()["choice"][:2]]
    three = [
        type(s)(**{**{f: getattr(s, f) for f in s.__slots__}, "metadata": {"choices": ["a", "b", "c"]}})
        for s in choices
    ]
    found = checks_of(mine, "changes", three)
    assert found["arguments"].status == "fail" and "choices" in found["arguments"].found
    assert found["determinism"].status == "ok"  # each call has a list of its own
    assert found["right answers"].status == "ok"


def test_a_batch_with_too_few_values_is_found(mine: Path) -> None:
    """One by one, as a failed batch is tried again, it returns enough."""
    found = checks_of(mine, "too_few")
    assert found["batches"].status == "fail" and "values for" in found["batches"].found


@pytest.mark.parametrize(
    ("name", "status"), [pytest.param("blocks", "warn", marks=pytest.mark.slow), ("waits", "ok")]
)
def test_an_async_reward_that_blocks_is_found(mine: Path, name: str, status: str) -> None:
    one = SMALL[:1] if name == "blocks" else SMALL
    assert checks_of(mine, name, one)["event loop"].status == status


def test_the_limit_holds_for_async_calls_that_never_yield(mine: Path) -> None:
    found = checks_of(mine, "hangs", SMALL[:1], timeout_s=1.0)
    assert found["time and memory"].status == "fail"
    assert "took longer than 1 s" in found["time and memory"].findings[0].why


def test_what_it_does_to_the_world_is_reported(mine: Path, tmp_path: Path) -> None:
    found = checks_of(mine, "leaves")["side effects"]
    assert found.status == "warn"
    for words in ("written.txt for writing", "subprocess.Popen", "127.0.0.1:9", "threads left running: left"):
        assert words in found.found
    assert checks_of(mine, "waits")["side effects"].status == "ok"


def command(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    vlrl = [sys.executable, "-c", "from vlrl.cli.main import main; main()", "reward", "test"]
    return subprocess.run(
        [*vlrl, *arguments, "--limit", "2", "--json"], cwd=cwd, capture_output=True, text=True
    )


def test_a_reward_that_ends_its_process_ends_no_command(mine: Path) -> None:
    done = command(f"{mine}:exits", cwd=mine.parent)
    assert done.returncode == 1
    result = json.loads(done.stdout)
    failed = {check["name"]: check for check in result["checks"] if check["status"] == "fail"}
    assert "its process ended with exit code 0" in failed["time and memory"]["findings"][0]["why"]


def test_what_was_never_scored_is_not_called_sound(mine: Path) -> None:
    with mine.open("a") as file:
        file.write("\ndef always_exits(completion, answer):\n    os._exit(0)\n")
    found = checks_of(mine, "always_exits", SMALL[:1])
    assert found["time and memory"].status == found["right answers"].status == "fail"
    fine = {name for name, check in found.items() if check.status == "ok"}
    assert not fine & {"determinism", "wrong answers", "no answer", "group variance", "answer tags"}


def test_threads_of_a_reward_do_not_keep_the_command(mine: Path) -> None:
    mine.write_text(mine.read_text() + "\nthreading.Thread(target=time.sleep, args=(3000,)).start()\n")
    begin = time.monotonic()
    assert command(f"{mine}:waits", cwd=mine.parent).returncode == 0
    assert time.monotonic() - begin < 2000  # the thread sleeps for longer


@pytest.mark.parametrize("statement", ["os._exit(0)", "os.kill(os.getpid(), 9)"])
def test_an_import_that_ends_the_process_is_named(tmp_path: Path, statement: str) -> None:
    (tmp_path / "gone.py").write_text(f"import os\n{statement}\n")
    done = command("./gone.py:score", cwd=tmp_path)
    assert done.returncode == 2
    assert "importing it ended the process" in done.stderr


def test_wrong_places_actions_and_arguments() -> None:
    sets = built_in_sets()
    kinds = {name: {what for sample in sets[name] for what, _ in misplaced(sample)} for name in sets}
    assert kinds["box"] == kinds["boxes"] == kinds["polygon"] == {"wrong place"}
    assert kinds["action"] == {"wrong place", "wrong action", "wrong argument"}
    assert kinds["text"] == kinds["choice"] == kinds["number"] == set()
    for sample in sets["box"]:
        ((_, (x0, y0, x1, y1)),) = misplaced(sample)
        a, b, c, d = sample.answer
        assert x1 - x0 == c - a and y1 - y0 == d - b and (x1 <= a or c <= x0 or y1 <= b or d <= y0)
        assert min(x0, y0) >= 0 and x1 <= 640 and y1 <= 480


@pytest.mark.parametrize(
    ("name", "statuses"),
    [
        ("step_match", ("ok", "ok", "ok")),
        ("action_type", ("warn", "ok", "warn")),
        ("click_in_box", ("ok", "ok", "warn")),
    ],
)
def test_what_a_gui_reward_looks_at(name: str, statuses: tuple[str, str, str]) -> None:
    samples = built_in_sets()["action"]
    trial = run_trial(find_reward(name), samples, "", timeout_s=20.0, seed=0, limit=8)
    found = {check.name: check.status for check in run_checks(trial)}
    assert tuple(found[f"wrong {what}s"] for what in ("place", "action", "argument")) == statuses


def test_a_reward_that_lets_some_wrong_clicks_through_is_unsound(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "from vlrl.rewards import reward\n"
        "from vlrl.rewards.agents.gui import click_in_box\n\n\n"
        "@reward(range=(0, 1))\n"
        "def leaky(completion, answer, *, canvases):\n"
        "    if 'click' in completion and answer.get('bbox', [0])[0] > 400:\n"
        "        return 1.0\n"
        "    return click_in_box(completion, answer, canvases=canvases)\n"
    )
    samples = [s for s in built_in_sets()["action"] if s.answer["action"] == "click"]
    found = checks_of(tmp_path / "mine.py", "leaky", samples)
    assert found["wrong places"].status == "fail"
