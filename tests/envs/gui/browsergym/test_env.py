"""gui/browsergym against BrowserGym itself and a real browser, in an interpreter of their own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ecosystem import ROOT, python

from vlrl.environment.host.failure import EnvFailure
from vlrl.environment.open import open_env
from vlrl.envs.gui import actions as a
from vlrl.envs.gui.browsergym.env import BrowserGymEnv
from vlrl.envs.gui.codecs.codec import ActionError

TASKS = ROOT / "tests" / "helpers" / "browsergym_tasks.py"
QUICK = {"pre_observation_delay": 0.05}
HOSTILE = "#'\"\\ {} '''\"\"\" keyboard_press('F1')\tÄ漢 __import__('os').system('touch PWNED') \ud83d%s"


def opened(tasks: str, **options: Any) -> BrowserGymEnv:
    given = {"packages": [str(TASKS)], "size": [640, 480], "make": QUICK, "python": python(), **options}
    env = open_env("gui/browsergym", {"tasks": [f"browsergym/{tasks}"], "codec": "browsergym", **given})
    assert isinstance(env, BrowserGymEnv)
    return env


@pytest.fixture(scope="module")
def local() -> Iterator[BrowserGymEnv]:
    env = opened("local.*", observe="both", task_steps=5)
    yield env
    env.close()


def begin(env: BrowserGymEnv, name: str, **task: Any) -> Any:
    return env.reset({"name": f"browsergym/local.{name}", **task}, 0)


def do(env: BrowserGymEnv, action: a.Action) -> Any:
    return env.step(env.codec.format(action, env.view))


def named(env: BrowserGymEnv, name: str) -> Any:
    (found,) = (each for each in env.backend.elements() if each.name == name)
    return found


def marked(mark: str) -> list[int]:
    """The processes of a program, its browser's among them."""
    found = []
    for environ in Path("/proc").glob("[0-9]*/environ"):
        try:
            if mark.encode() in environ.read_bytes():
                found.append(int(environ.parent.name))
        except OSError:
            continue
    return sorted(found)


def browser_of(env: BrowserGymEnv) -> int:
    assert env.backend._program is not None
    commands = {pid: Path(f"/proc/{pid}/cmdline").read_bytes() for pid in marked(env.backend._program.mark)}
    # The first is Debian's script around it.
    return max(pid for pid, command in commands.items() if b"--remote-debugging-pipe" in command)


def test_an_answer_that_asks_is_replied_to_and_one_that_answers_ends(local: BrowserGymEnv) -> None:
    shown = begin(local, "question", seed=7)
    assert shown.text.startswith("Task: Which number is beside this?")
    goal, screen = shown.images
    assert goal.getpixel((0, 0)) == (255, 0, 0) and screen.shape == (480, 640, 3)
    assert local.task_info == {"task": "browsergym/local.question"}
    asked = do(local, a.Answer("Where?"))
    assert not asked.terminated and "The user says: Read the heading." in asked.observation.text
    assert len(asked.observation.images) == 1
    number = next(each.name for each in local.backend.elements() if each.role == "heading")[-3:]
    ended = do(local, a.Answer(number))
    assert (ended.reward, ended.terminated, ended.info["success"]) == (1.0, True, True)
    begin(local, "question", seed=8)
    assert number not in str(local.backend.elements()), "the seed draws the number"
    wrong = do(local, a.Answer(number))
    assert (wrong.reward, wrong.terminated, wrong.info["success"]) == (0.0, True, False)


def test_giving_up_may_be_right(local: BrowserGymEnv) -> None:
    begin(local, "infeasible")
    ended = do(local, a.Finish(success=False))
    assert (ended.reward, ended.terminated, ended.info["success"]) == (1.0, True, True)
    begin(local, "infeasible")
    ended = do(local, a.Finish())
    assert (ended.reward, ended.terminated, ended.info["success"]) == (0.0, True, False)


def test_pages_of_their_own_are_tabs_and_rewards_come_when_they_are_earned() -> None:
    env = opened("local.tabs", reward="progress")
    env.reset({}, 0)
    opens = do(env, a.Click((50, 40)))
    assert opens.reward == 0.5 and "Tabs: 1. untitled, 2. Other. Shown is 2." in opens.observation.text
    assert "Shown is 1." in do(env, a.Key(("ctrl", "tab"))).observation.text
    assert "Shown is 2." in do(env, a.Key(("ctrl", "2"))).observation.text
    assert "Tabs" not in do(env, a.Key(("ctrl", "w"))).observation.text
    ended = do(env, a.Click((50, 160)))
    assert (ended.reward, ended.terminated, ended.info["success"]) == (0.5, True, True)
    env.close()


def test_what_is_done_arrives_where_it_was_meant_to(local: BrowserGymEnv) -> None:
    begin(local, "form")
    for action in (
        a.Click((400, 40), "right"),
        a.Click((400, 40), "left", 2),
        a.Drag(((400, 20), (500, 40), (520, 60)), "middle"),
        a.Scroll(0, 100, (400, 40)),
        a.Click((400, 40), modifiers=("shift",)),
        a.Key(("escape",)),
        a.Wait(1),
        a.ButtonDown("left", (420, 40)),
        a.ButtonUp("left"),
    ):
        local.backend.perform(action)
    seen = next(each.name for each in local.backend.elements() if each.name.startswith("down2"))
    assert seen == (
        "down2@200,20 up@200,20 down0@200,20 up@200,20 down0@200,20 up@200,20 double down1@200,10 up@260,30 "
        "wheel0,50 Shift down0@200,20 up@200,20 Escape down0@210,20 up@210,20"
    )


def test_a_text_is_typed_whatever_it_says(local: BrowserGymEnv) -> None:
    begin(local, "form")
    local.backend.perform(a.Click((100, 50)))
    local.backend.perform(a.TypeText(HOSTILE + "\nend"))
    assert named(local, "typed").value == HOSTILE.replace("\ud83d", "?") + "\nend"
    assert "focused" in named(local, "typed").states and not Path("PWNED").exists()
    refused = do(local, a.Click((3, 3)))
    assert not refused.info["invalid"]
    with pytest.raises(ActionError, match="BrowserGym cannot"):
        local.backend.perform(a.Click((3, 3), count=3))


def test_the_tree_says_what_is_where(local: BrowserGymEnv) -> None:
    shown = begin(local, "form")
    framed, ticked, pressable = (named(local, n) for n in ("In a frame", "Ticked", "Pressable"))
    assert (framed.role, framed.box) == ("button", (20, 200, 180, 260))
    assert ticked.states >= {"checked", "disabled"}
    assert (pressable.role, pressable.box) == ("button", (460, 200, 580, 240))
    assert "hidden" in named(local, "below").states and "below" not in shown.text
    assert 'button "In a frame" at 100, 230' in shown.text


@pytest.mark.parametrize("victim", ["browser", "program"])
def test_what_dies_is_a_failure_and_then_replaced(victim: str, local: BrowserGymEnv) -> None:
    begin(local, "infeasible")
    program = local.backend._program
    assert program is not None
    os.kill(browser_of(local) if victim == "browser" else program.pid, signal.SIGKILL)
    with pytest.raises(EnvFailure) as failed:
        do(local, a.Move((20, 20)))
    assert failed.value.kind == "died"
    begin(local, "infeasible")
    assert victim == "browser" or marked(program.mark) == [], "all of it is ended"


@pytest.mark.slow
def test_a_page_that_hangs_is_ended_with_its_browser() -> None:
    env = opened("local.hanging", deadlines={"step_s": 4.0})
    env.reset({}, 0)
    program = env.backend._program
    assert program is not None
    with pytest.raises(EnvFailure, match="no answer to step in 4 s") as failed:
        do(env, a.Click((20, 20)))
    assert failed.value.kind == "hung"
    env.reset({}, 0)
    assert marked(program.mark) == []
    env.close()
    env.close()


@pytest.mark.slow
def test_nothing_is_left_when_vlrl_is_gone(tmp_path: Path) -> None:
    code = f"""
import sys
sys.path[:0] = [{str(ROOT / "tests" / "helpers")!r}, {str(Path(__file__).parent)!r}]
from test_env import opened
env = opened("local.infeasible")
env.reset({{}}, 0)
print(env.backend._program.mark, flush=True)
sys.stdin.readline()
"""
    command = [sys.executable, "-c", code]
    told = {**os.environ, "TMPDIR": str(tmp_path)}
    child = subprocess.Popen(command, stdin=-1, stdout=-1, text=True, cwd=ROOT, env=told)
    assert child.stdout is not None
    mark = child.stdout.readline().strip()
    assert len(marked(mark)) > 2 and list(tmp_path.glob("vlrl-browsergym-*/playwright*"))
    child.kill()
    child.communicate()
    while marked(mark):  # the suite's own time limit ends a wait that is in vain
        time.sleep(0.05)
    assert not list(tmp_path.glob("*browsergym*")) and not list(tmp_path.glob("*playwright*"))
