"""OSWorld: actions as calls of a closed set, verdicts, and failures that are not verdicts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from gui_servers import OSWorld
from machine_tasks import HOSTILE, PRINTS, QUICK, SIZE, TASK, say, typed_by

from vlrl.environment.host.failure import EnvFailure
from vlrl.envs.gui import actions as a
from vlrl.envs.gui.codecs.codec import ActionError
from vlrl.envs.gui.remote.osworld import OSWorldEnv
from vlrl.envs.gui.remote.osworld_program import PROGRAM, calls_of
from vlrl.errors import ConfigError


@pytest.fixture
def osworld(tmp_path: Path) -> Iterator[OSWorld]:
    machine = OSWorld(tmp_path / "machine")
    with machine.server:
        yield machine


def desktop(machine: OSWorld, **options: Any) -> OSWorldEnv:
    given = {"revert": [], "size": SIZE, "settle_s": 0.0, "deadlines": QUICK, **options}
    return OSWorldEnv([machine.server.url], **given)


@pytest.mark.parametrize(
    "action",
    [
        *(a.TypeText(text) for text in ("a<b", "<", "<<a", "if (a<b && c>d) <br>\n", "a>b, c")),
        *(a.Key(("<",)), a.KeyDown("<")),
    ],
)
def test_osworld_less_than_is_typed_as_such(action: Any) -> None:
    wanted = action.text if isinstance(action, a.TypeText) else "<"
    assert typed_by(calls_of(action)) == wanted


def test_osworld_an_episode(osworld: OSWorld) -> None:
    env = desktop(osworld)
    shown = env.reset(TASK, 0)
    assert shown.text == "Task: Make it ready."
    assert osworld.server.count("/setup/launch") == 1
    result = say(env, a.Click((3, 5), "right", 2, ("ctrl",)))
    assert result.reward == 0 and not result.terminated
    click = {"button": "right", "clicks": 2, "interval": 0.05}
    assert osworld.calls() == [
        ["moveTo", {"x": 3, "y": 5}],
        ["keyDown", {"key": "ctrl"}],
        ["click", click],
        ["keyUp", {"key": "ctrl"}],
    ]
    assert env.view.pointer == (12, 34), "where the machine says that it is"
    refused = say(env, a.Swipe((1, 1), (2, 2)))
    assert refused.info["invalid"] and "no Swipe" in refused.observation.text
    end = say(env, a.Finish())
    assert (end.reward, end.terminated, end.info["success"]) == (1.0, True, True)
    env.close()


@pytest.mark.parametrize("text", HOSTILE)
def test_osworld_what_a_model_writes_is_typed_and_never_run(osworld: OSWorld, text: str) -> None:
    env = desktop(osworld)
    env.reset(TASK, 0)
    env.step(env.codec.format(a.TypeText(text), env.view))
    assert typed_by(osworld.calls()) == text
    assert osworld.programs == {PROGRAM}, "always the same program"
    assert not list(osworld.folder.rglob("PWNED")) and not Path("PWNED").exists()
    env.close()


def test_osworld_every_action_is_calls_of_a_closed_set_with_plain_values() -> None:
    several = [
        a.Move((1, 2)),
        a.ButtonDown("left", (1, 2)),
        a.ButtonUp(),
        a.Drag(((1, 2), (3, 4), (5, 6))),
        a.Scroll(0, 300),
        a.Scroll(-100, 0, (1, 1)),
        a.Key(("ctrl", "page_up")),
        a.KeyDown("super"),
        a.KeyUp("super"),
        a.Wait(10**9),
        a.Answer("x"),
        a.Finish(),
    ]
    made = {type(action).__name__: calls_of(action) for action in several}
    assert made["Scroll"] == [("moveTo", {"x": 1, "y": 1}), ("hscroll", {"clicks": -1})]
    assert calls_of(a.Scroll(0, 300)) == [("scroll", {"clicks": -3})]
    assert [call[0] for call in made["Drag"]] == ["moveTo", "mouseDown", "moveTo", "moveTo", "mouseUp"]
    assert made["Key"][1] == ("keyDown", {"key": "pageup"}) and made["KeyDown"] == [
        ("keyDown", {"key": "win"})
    ]
    assert made["Wait"] == [("sleep", {"seconds": 10.0})], "no model lets a deadline pass"
    assert made["Answer"] == made["Finish"] == []
    for action in (a.LongPress((1, 1)), a.SystemButton("home"), a.OpenApp("x"), a.TypeText("é")):
        with pytest.raises(ActionError):
            calls_of(action)


def test_osworld_an_episode_stays_on_its_machine(osworld: OSWorld) -> None:
    env, other = desktop(osworld), desktop(osworld)
    env.reset(TASK, 0)
    (osworld.folder / "mark").unlink()  # as putting the machine back does
    with pytest.raises(EnvFailure, match="not the machine") as failed:
        say(env, a.Click((1, 1)))
    assert failed.value.kind == "died"
    assert osworld.calls() == [], "nothing was done there"
    env.reset(TASK, 0)
    with pytest.raises(EnvFailure, match="all of 1 machines are in use"):
        desktop(osworld, deadlines={**QUICK, "reset_s": 0.1}).reset(TASK, 0)
    env.close()
    other.reset(TASK, 0)
    other.close()


@pytest.mark.parametrize("fault", ["drop", "500", "lost", "cut", "slow"])
def test_osworld_an_action_is_never_sent_twice(osworld: OSWorld, fault: Any) -> None:
    env = desktop(osworld)
    env.reset(TASK, 0)
    env.backend.deadlines = type(env.backend.deadlines)(step_s=0.3 if fault == "slow" else 20.0)  # type: ignore[attr-defined]
    osworld.server.faults = [("/execute", fault)]
    with pytest.raises(EnvFailure, match="/execute"):
        say(env, a.Click((1, 1)))
    assert osworld.server.faults == [] and len(osworld.calls()) <= 2
    env.close()


@pytest.mark.parametrize("fault", ["drop", "500", "cut"])
def test_osworld_a_screenshot_is_asked_for_again(osworld: OSWorld, fault: Any) -> None:
    env = desktop(osworld)
    env.reset(TASK, 0)
    osworld.server.faults = [("/screenshot", fault)] * 2
    assert not say(env, a.Click((1, 1))).info["invalid"]
    osworld.server.faults = [("/screenshot", fault)] * 3
    with pytest.raises(EnvFailure, match="/screenshot"):
        say(env, a.Click((1, 1)))
    env.close()


def test_osworld_half_a_screenshot_is_a_failure(osworld: OSWorld) -> None:
    env = desktop(osworld)
    env.reset(TASK, 0)
    osworld.server.faults = [("/screenshot", "half")]
    with pytest.raises(EnvFailure, match="not a whole image"):
        say(env, a.Click((1, 1)))
    env.close()


def test_osworld_verifying_that_fails_is_no_result(osworld: OSWorld) -> None:
    env = desktop(osworld)
    broken = {**TASK["evaluator"], "result": {**PRINTS, "command": ["no-such-program"]}}  # type: ignore[dict-item]
    for evaluator in (broken, TASK["evaluator"]):
        env.reset({**TASK, "evaluator": evaluator}, 0)
        osworld.server.faults = [] if evaluator is broken else [("/execute", "drop")]
        with pytest.raises(EnvFailure, match="/execute"):
            say(env, a.Finish())
    env.close()


def test_osworld_verdicts(osworld: OSWorld) -> None:
    env = desktop(osworld)

    def ends(evaluator: Any, success: bool = True) -> float:
        env.reset({**TASK, "evaluator": evaluator}, 0)
        return float(say(env, a.Finish(success)).reward)

    parts = {"func": "check_include_exclude", "result": PRINTS}
    rules = [{"include": ["rea"]}, {"include": ["rea"], "exclude": ["dy"]}]
    expected = [{"type": "rule", "rules": each} for each in rules]
    assert [ends({**parts, "expected": each}) for each in expected] == [1.0, 0.0]
    both = {"func": ["check_include_exclude"] * 2, "result": [PRINTS] * 2, "expected": expected}
    assert (ends(both), ends({**both, "conj": "or"})) == (0.0, 1.0)
    assert (ends({"func": "infeasible"}), ends({"func": "infeasible"}, False)) == (0.0, 1.0)
    assert ends(TASK["evaluator"], False) == 0.0, "who gives up has not done it"
    env.close()


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"instruction": ""}, "instruction"),
        ({"evaluator": {"func": "compare_table"}}, "compare_table.*gui/osgym"),
        ({"evaluator": None}, "evaluator"),
        ({"config": [{"type": "googledrive"}]}, "googledrive"),
    ],
)
def test_osworld_wrong_tasks_are_refused(osworld: OSWorld, change: Any, match: str) -> None:
    env = desktop(osworld)
    with pytest.raises(ConfigError, match=match):
        env.reset({**TASK, **change}, 0)
    env.close()


def test_osworld_puts_the_machine_back_by_a_command(osworld: OSWorld, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="revert"):
        OSWorldEnv([osworld.server.url])
    with pytest.raises(ConfigError, match=r"size=\[64, 48\]"):
        desktop(osworld, size=[10, 10]).reset(TASK, 0)
    env = desktop(osworld, revert=["touch", str(tmp_path / "reverted-{index}")])
    env.reset(TASK, 0)
    assert (tmp_path / "reverted-0").exists()
    env.close()
    with pytest.raises(EnvFailure, match="revert failed"):
        desktop(osworld, revert=["false"]).reset(TASK, 0)


def test_osworld_waits_until_the_screen_is_quiet(osworld: OSWorld) -> None:
    for settle_s, settled in ((10.0, True), (0.0, False)):
        env = desktop(osworld, settle_s=settle_s)
        env.reset(TASK, 0)
        assert say(env, a.Click((1, 1))).info["settled"] is settled
        env.close()
