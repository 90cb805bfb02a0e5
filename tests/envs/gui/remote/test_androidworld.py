"""AndroidWorld: actions in its words, verdicts, and failures that are not verdicts."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

import pytest
from gui_servers import AndroidWorld
from machine_tasks import QUICK, SIZE, say

from vlrl.environment.host.failure import EnvFailure
from vlrl.envs.gui import actions as a
from vlrl.envs.gui.codecs.codec import ActionError
from vlrl.envs.gui.remote.androidworld import AndroidWorldEnv, json_action


@pytest.fixture
def phone() -> Iterator[AndroidWorld]:
    machine = AndroidWorld()
    with machine.server:
        yield machine


def android(machine: AndroidWorld, **options: Any) -> AndroidWorldEnv:
    return AndroidWorldEnv([machine.server.url], **{"size": SIZE, "deadlines": QUICK, **options})


def test_androidworld_an_episode(phone: AndroidWorld) -> None:
    env = android(phone, verify="step")
    text = env.reset({"task_type": "GoHome"}, 3).text
    assert text == env.reset({"task_type": "GoHome"}, 3).text != env.reset({"task_type": "GoHome"}, 4).text
    say(env, a.Click((3, 5)))
    say(env, a.TypeText("hi"))
    assert phone.actions == [
        {"action_type": "click", "x": 3, "y": 5},
        {"action_type": "input_text", "x": 3, "y": 5, "text": "hi"},
    ]
    end = say(env, a.SystemButton("home"))
    assert (end.reward, end.terminated) == (1.0, True)
    env.close()
    assert phone.task == "", "torn down"
    slow = android(phone)
    slow.reset({"task_type": "GoHome"}, 3)
    assert not say(slow, a.SystemButton("home")).terminated, "asked for at the end alone"
    assert say(slow, a.Finish(False)).reward == 0, "who says that it cannot be done has not done it"
    slow.close()


def test_androidworld_actions() -> None:
    def made(action: a.Action) -> dict[str, Any]:
        said = json_action(action, (7, 8))
        return json.loads(json.dumps(said))

    assert made(a.Click(count=2)) == {"action_type": "double_tap", "x": 7, "y": 8}
    assert made(a.Swipe((5, 5), (5, 1)))["direction"] == "up"
    assert made(a.Swipe((1, 5), (9, 5)))["direction"] == "left", "its word for where the finger comes from"
    assert made(a.Scroll(0, 100)) == {"action_type": "scroll", "direction": "down"}
    assert made(a.Answer("42")) == {"action_type": "answer", "text": "42"}
    assert made(a.OpenApp("Simple Notes")) == {"action_type": "open_app", "app_name": "Simple Notes"}
    for action in (a.OpenApp("x; rm -rf /"), a.Key(("ctrl", "c")), a.Move((1, 1)), a.SystemButton("menu")):
        with pytest.raises(ActionError):
            made(action)


@pytest.mark.parametrize("fault", ["drop", "500", "lost", "cut", "half"])
def test_androidworld_faults(phone: AndroidWorld, fault: Any) -> None:
    env = android(phone)
    env.reset({"task_type": "GoHome"}, 0)
    phone.server.faults = [("/screenshot", fault)] * (1 if fault == "half" else 3)
    with pytest.raises(EnvFailure, match="/screenshot"):
        say(env, a.Click((1, 1)))
    env.reset({"task_type": "GoHome"}, 0)
    if fault != "half":  # the answer is not read
        phone.server.faults = [("/execute_action", fault)]
        with pytest.raises(EnvFailure, match="/execute_action"):
            say(env, a.Click((1, 1)))
    assert len(phone.actions) <= 1, "nothing is sent twice"
    phone.server.faults = [("/task/score", fault)] * 3
    with pytest.raises(EnvFailure, match="/task/score"):
        say(env, a.Finish())
    env.close()


def test_androidworld_a_server_that_was_started_anew_is_found_out(phone: AndroidWorld) -> None:
    env = android(phone)
    env.reset({"task_type": "GoHome"}, 0)
    seed = phone.seed
    phone.start()
    phone.seed = seed  # as if the goal had no parameters
    with pytest.raises(EnvFailure, match="started again"):
        say(env, a.Finish())
    phone.score = math.inf
    env.reset({"task_type": "GoHome"}, 0)
    with pytest.raises(EnvFailure, match="a score of inf"):
        say(env, a.Finish())
    env.close()
