"""TRL's environment classes, as they are."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from transformers.utils import get_json_schema

from vlrl.environment.open import open_env
from vlrl.errors import ConfigError
from vlrl.parsing.tool_calls import parse_calls, write_call

EXAMPLE = Path(__file__).parents[3] / "examples" / "environments" / "trl_guess.py"

SHAPES = '''
import asyncio

class Door:
    """In the shape of TRL's own examples: state, tools, the reward as an attribute."""

    def __init__(self):
        self.reward = 0.0

    def reset(self, **kwargs):
        self.row = kwargs
        self.reward = 0.0
        self.opened = False
        return None

    def push(self, force: float) -> str:
        """
        Push the door.

        Args:
            force: How hard.
        """
        if force < 1:
            raise ValueError("too weak")
        self.opened, self.reward = True, 0.5
        return "it opens"

    async def wait(self) -> dict:
        """
        Wait a moment.
        """
        self.loop = getattr(self, "loop", None) or asyncio.get_running_loop()
        await asyncio.sleep(0)
        return {"same_loop": self.loop is asyncio.get_running_loop()}

    def call_home(self) -> str:
        """
        Ask a server that is away.
        """
        raise ConnectionError("no server at 127.0.0.1:9")

    def _helper(self, undocumented):
        pass

class AsyncReward(Door):
    async def get_reward(self) -> float:
        await asyncio.sleep(0)
        return 0.25 if self.opened else -1.0

class NoDocstring:
    reward = 0.0
    def reset(self, **kwargs): return None
    def push(self, force): return ""

class NoReward:
    def reset(self, **kwargs): return None
    def push(self) -> str:
        """
        Push.
        """
        return ""

class NoTools:
    reward = 0.0
    def reset(self, **kwargs): return None

class NoReset:
    reward = 0.0
'''


@pytest.fixture
def shapes(tmp_path: Path) -> Path:
    file = tmp_path / "shapes.py"
    file.write_text(SHAPES)
    return file


def door(shapes: Path, name: str = "Door", **options: Any) -> Any:
    return open_env("trl", {"factory": f"{shapes}:{name}", **options})


def guessing(**options: Any) -> Any:
    return open_env("trl", {"factory": f"{EXAMPLE}:GuessTheNumber", **options})


def test_an_episode_of_the_example() -> None:
    env = guessing()
    shown = env.reset({"prompt": "Hello. ", "highest": 9}, seed=3)
    assert shown.text.startswith("Hello. I think of a number from 1 to 9.") and shown.role == "user"
    number = env._instance.number
    looked = env.step(write_call("look", {}))
    assert looked.observation.role == "tool" and looked.observation.text == "The scale:"
    assert [image.size for image in looked.observation.images] == [(56, 56)]
    wrong = env.step("<think>hm</think>" + write_call("guess", {"number": number + 1}))
    assert (wrong.observation.text, wrong.reward, wrong.terminated) == ("lower", 0.0, False)
    assert env.step(write_call("guess", {"number": number})).observation.text == "right"
    ended = env.step("It is done.")
    assert (ended.reward, ended.terminated, ended.truncated) == (0.5, True, False)
    assert ended.info["success"] is True


def test_the_tools_are_declared_as_trl_declares_them() -> None:
    env = guessing()
    instance = env._instance
    assert env.tools == [get_json_schema(instance.guess), get_json_schema(instance.look)]


def test_the_row_and_a_derived_seed_reach_reset(shapes: Path) -> None:
    env = door(shapes)
    env.reset({"prompt": "x", "level": 3}, seed=1)
    assert env._instance.row == {"prompt": "x", "level": 3}
    game = guessing()
    numbers = []
    for seed in (1, 1, *range(2, 12)):
        game.reset({"highest": 1000}, seed)
        numbers.append(game._instance.number)
    assert numbers[0] == numbers[1] and len(set(numbers)) > 5
    game.reset({"highest": 1000, "seed": 7}, seed=1)
    assert game._instance.number == random.Random(7).randint(1, 1000)


def test_images_of_the_row_are_shown(shapes: Path) -> None:
    image = np.zeros((28, 28, 3), np.uint8)
    env = door(shapes)
    prompt = [{"role": "user", "content": [{"type": "text", "text": "Open it."}]}]
    assert env.reset({"prompt": prompt, "image": image}, 0).images == (image,)
    assert len(env.reset({"images": [image, image]}, 0).images) == 2
    assert env.reset({}, 0).images == ()


def test_several_calls_are_answered_in_their_order_and_errors_as_trl_says_them(shapes: Path) -> None:
    env = door(shapes)
    env.reset({}, 0)
    calls = [
        ("push", {"force": 0}),
        ("push", {}),
        ("kick", {}),
        ("_helper", {}),
        ("reset", {}),
        ("push", {"force": 2}),
    ]
    result = env.step("\n".join(write_call(*call) for call in calls))
    lines = result.observation.text.splitlines()
    assert lines[0] == "{'error': 'too weak'}"
    assert "missing 1 required positional argument" in lines[1]
    assert all("not found. Tools are call_home, push, wait." in line for line in lines[2:5])
    assert lines[5] == "it opens"
    assert (result.info["num_tool_calls"], result.info["num_tool_errors"]) == (6, 5)
    assert result.info["invalid"] is False and not result.terminated


def test_a_call_that_cannot_be_read_is_answered(shapes: Path) -> None:
    env = door(shapes)
    env.reset({}, 0)
    result = env.step("<tool_call>{'name': 'push'}</tool_call>")
    assert result.info["invalid"] is True and not result.terminated and result.reward == 0.0
    assert "<tool_call>" in result.observation.text


def test_the_reward_is_an_attribute_or_asynchronous_or_left_to_the_run(shapes: Path) -> None:
    for name, options, expected in [
        ("Door", {}, 0.5),
        ("Door", {"reward": "opened"}, 1.0),
        ("AsyncReward", {}, 0.25),
        ("NoReward", {"reward": "none"}, 0.0),
    ]:
        env = door(shapes, name, **options)
        env.reset({}, 0)
        env.step(write_call("push", {"force": 2} if name != "NoReward" else {}))
        ended = env.step("done")
        assert (ended.reward, ended.terminated) == (expected, True)
        assert ("success" in ended.info) is (options.get("reward") != "none")
        env.close()
        env.close()


def test_async_tools_share_one_loop(shapes: Path) -> None:
    env = door(shapes)
    env.reset({}, 0)
    assert env.step(write_call("wait", {})).observation.text == "{'same_loop': True}"
    assert env.step(write_call("wait", {})).observation.text == "{'same_loop': True}"
    env.close()


def test_after_the_last_round_of_calls_no_call_is_made(shapes: Path) -> None:
    env = door(shapes, max_iterations=1)
    env.reset({}, 0)
    assert not env.step(write_call("push", {"force": 0})).terminated
    last = env.step(write_call("push", {"force": 2}))
    assert (last.terminated, last.reward) == (True, 0.0)
    assert env._instance.opened is False
    env.reset({}, 0)
    assert not env.step(write_call("push", {"force": 2})).terminated


def test_a_server_that_is_away_is_a_failure_and_no_answer(shapes: Path) -> None:
    env = door(shapes)
    env.reset({}, 0)
    with pytest.raises(ConnectionError, match="no server"):
        env.step(write_call("call_home", {}))


def test_random_actions_are_calls_of_the_tools(shapes: Path) -> None:
    env = guessing()
    env.reset({}, 0)
    for seed in range(20):
        text = env.random_action(np.random.default_rng(seed))
        assert env.step(text).info["num_tool_errors"] == 0, text
        assert text == env.random_action(np.random.default_rng(seed))
        assert len(parse_calls(text)) == 1


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("NoDocstring", "NoDocstring.push is a tool.*not whole"),
        ("NoReward", "neither get_reward.*set reward"),
        ("NoTools", "no public method beside reset"),
        ("NoReset", "no method reset"),
        ("Dor", "did you mean 'Door'"),
    ],
)
def test_classes_that_cannot_be_used_say_why(shapes: Path, name: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        door(shapes, name)


def test_wrong_options_say_what_is_wrong(shapes: Path) -> None:
    with pytest.raises(ConfigError, match=r"file.py:Class or package.module:Class"):
        open_env("trl", {"factory": "Door"})
    with pytest.raises(ConfigError, match="cannot be loaded"):
        open_env("trl", {"factory": "no_such_package:Door"})
    with pytest.raises(ConfigError, match=r"does not take args=\{'size': 3\}"):
        door(shapes, args={"size": 3})
    with pytest.raises(ConfigError, match="option system_prompt"):
        door(shapes).reset(
            {"prompt": [{"role": "system", "content": ""}, {"role": "user", "content": ""}]}, 0
        )
