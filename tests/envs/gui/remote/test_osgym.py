"""OSGym: actions in its words, what is typed beside OSWorld's, and failures that are not verdicts."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from gui_servers import OSGym
from machine_tasks import HOSTILE, QUICK, SIZE, TASK, say, typed_by

from vlrl.environment.host.failure import EnvFailure
from vlrl.envs.gui import actions as a
from vlrl.envs.gui.remote.osgym import OSGymEnv, text_of_action
from vlrl.envs.gui.remote.osworld_program import PROGRAM, calls_of, command
from vlrl.seeds import derive_seed


@pytest.fixture
def osgym() -> Iterator[OSGym]:
    machine = OSGym()
    with machine.server:
        yield machine


def gym(machine: OSGym, **options: Any) -> OSGymEnv:
    return OSGymEnv([machine.server.url], **{"size": SIZE, "deadlines": QUICK, **options})


def test_osgym_an_episode(osgym: OSGym) -> None:
    env = gym(osgym)
    assert env.reset(TASK, 0).text == "Task: Make it ready."
    for action in (a.Click((3, 5)), a.Click((3, 5), count=2), a.Scroll(0, 200, (1, 2)), a.Key(("ctrl", "s"))):
        assert not say(env, action).info["invalid"]
    assert osgym.done == [
        ("click", "3,5"),
        ("left_double", "3,5"),
        ("scroll", "1,2,-2"),
        ("hotkey", "ctrl,s"),
    ]
    assert say(env, a.Click((3, 5), modifiers=("ctrl",))).info["invalid"], "it has no word for that"
    end = say(env, a.Finish())
    assert (end.reward, end.terminated) == (1.0, True)
    env.reset(TASK, 0)
    assert osgym.active
    env.close()
    assert not osgym.active, "the desktop was given back"


@pytest.mark.parametrize("text", HOSTILE)
def test_osgym_what_a_model_types_is_never_an_action(osgym: OSGym, text: str) -> None:
    env = gym(osgym)
    env.reset(TASK, 0)
    result = say(env, a.TypeText(text))
    assert not result.info["invalid"] and not result.terminated
    keys = {"shift,7": "&", "shift,0": ")"}
    assert {kind for kind, _ in osgym.done} <= {"type", "hotkey"}
    assert "".join(keys[said] if kind == "hotkey" else said for kind, said in osgym.done) == text
    env.close()


@pytest.mark.parametrize("fault", ["drop", "500", "lost", "cut", "half"])
def test_osgym_faults(osgym: OSGym, fault: Any) -> None:
    env = gym(osgym)
    env.reset(TASK, 0)
    osgym.server.faults = [("/step", fault)]
    with pytest.raises(EnvFailure, match="/step"):
        say(env, a.Click((1, 1)))
    assert len(osgym.done) <= 1, "nothing is sent twice"
    osgym.server.faults = [("/reset", fault)]
    with pytest.raises(EnvFailure, match="/reset"):
        env.reset(TASK, 0)
    env.close()


@pytest.mark.parametrize("reward", [None, "1", math.nan, 7, -1, [1]])
def test_osgym_a_reward_that_is_none_is_a_failure(osgym: OSGym, reward: Any) -> None:
    env = gym(osgym)
    osgym.reward = reward
    env.reset(TASK, 0)
    with pytest.raises(EnvFailure, match="a score of"):
        say(env, a.Finish())
    env.close()


def test_osgym_a_desktop_that_was_taken_away_is_a_failure(osgym: OSGym) -> None:
    env = gym(osgym)
    env.reset(TASK, 0)
    osgym.active = False
    with pytest.raises(EnvFailure, match="VM ID 2 not available"):
        say(env, a.Click((1, 1)))
    env.close()


def test_texts_at_random_stay_texts_in_both_desktops_words() -> None:
    rng = np.random.default_rng(derive_seed("remote", "texts"))
    keys = {"shift,7": "&", "shift,0": ")"}
    for _ in range(2000):
        text = "".join(rng.choice(list("ab&)(,'\"\\\n ;$`{}"), rng.integers(1, 12)))
        argv = command(calls_of(a.TypeText(text)), "episode")
        assert argv[:3] == ["python", "-c", PROGRAM]
        assert typed_by(json.loads(argv[3])["calls"]) == text
        pieces = [
            re.fullmatch(r"(\w+)\(([^)]*)\)", part) for part in text_of_action(a.TypeText(text)).split("&")
        ]
        read = [(piece[1], piece[2]) for piece in pieces if piece]
        assert len(read) == len(pieces) and {kind for kind, _ in read} <= {"type", "hotkey"}
        assert "".join(keys[said] if kind == "hotkey" else said for kind, said in read) == text
