"""Gymnasium's own environments, and a stranger's, behind vlrl's contract."""

from __future__ import annotations

import sys
from typing import Any, ClassVar

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from vlrl.environment.open import open_env
from vlrl.errors import ConfigError

LAKE = {"id": "FrozenLake-v1", "kwargs": {"is_slippery": False}, "actions": ["left", "down", "right", "up"]}
WAY = ["down", "down", "right", "right", "down", "right"]
"""Through the 4×4 map."""


class Cell(gymnasium.Env[Any, Any]):
    """A stranger's environment: its action is a mapping, its image a fresh number's grey."""

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["rgb_array", "ansi"], "render_fps": 1}

    def __init__(self, render_mode: str | None = None, image: str = "right", channels: int = 3) -> None:
        self.render_mode = render_mode
        self.image, self.channels = image, channels
        self.action_space = spaces.Dict({"add": spaces.Discrete(3), "say": spaces.Text(4)})
        self.observation_space = spaces.Dict({"grey": spaces.Box(0, 255, (1,), np.int64)})
        self.grey = 0
        self.canvas = np.zeros((4, 8, channels), np.uint8)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.grey = (options or {}).get("grey", int(self.np_random.integers(200)))
        return {"grey": np.array([self.grey])}, {}

    def step(self, action: Any) -> Any:
        self.grey += int(action["add"])
        info = {
            "won": action["say"] == "win",
            "state": "theirs",
            "count": np.int64(3),
            "note": "x",
            "bad": np.nan,
        }
        return {"grey": np.array([self.grey])}, -0.5, False, action["say"] == "stop", info

    def render(self) -> Any:
        if self.image == "wrong":
            return [1, 2]
        self.canvas[:] = self.grey  # the same memory every time
        return self.canvas


class Silent(Cell):
    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["ansi"], "render_fps": 1}


@pytest.fixture(autouse=True)
def _registered() -> Any:
    gymnasium.register("vlrl-test/Cell-v0", Cell)
    gymnasium.register("vlrl-test/Silent-v0", Silent)
    yield
    del gymnasium.registry["vlrl-test/Cell-v0"], gymnasium.registry["vlrl-test/Silent-v0"]


def act(word: str) -> str:
    return f"<think>so</think><action>{word}</action>"


@pytest.mark.parametrize(
    ("id", "actions", "size"),
    [
        ("CartPole-v1", ["left", "right"], (400, 600)),
        ("FrozenLake-v1", None, (256, 256)),
        ("Taxi-v4", ["south", "north", "east", "west", "pickup", "drop off"], None),
        ("MountainCarContinuous-v0", None, (400, 600)),
        ("MountainCarContinuous-v0", {"left": [-1.0], "right": [1.0]}, (400, 600)),
        ("vlrl-test/Cell-v0", None, (4, 8)),
    ],
)
def test_an_episode_is_the_environment_s_own(id: str, actions: Any, size: Any) -> None:
    """Step by step beside the raw environment: image, reward, ends and numbers of info."""
    env: Any = open_env("gymnasium", {"id": id, "actions": actions, "kwargs": {"max_episode_steps": 40}})
    raw = gymnasium.make(id, render_mode="rgb_array", max_episode_steps=40)
    observation, (_, raw_info) = env.reset({}, 11), raw.reset(seed=11)
    assert np.array_equal(observation.images[0], raw.render())
    assert size is None or observation.images[0].shape == (*size, 3)
    rng, ended = np.random.default_rng(5), False
    while not ended:
        text = env.random_action(rng)
        result = env.step(text)
        parsed = env.grammar.parse(text.removeprefix("<action>").removesuffix("</action>"))
        _, reward, terminated, truncated, raw_info = raw.step(parsed)
        assert (result.reward, result.terminated, result.truncated) == (reward, terminated, truncated)
        assert np.array_equal(result.observation.images[0], raw.render())
        for key in set(raw_info) & set(result.info) - {"success", "invalid", "state"}:
            assert result.info[key] == raw_info[key]
        ended = terminated or truncated
    env.close()
    env.close()
    raw.close()


def test_the_way_through_the_lake_is_a_success() -> None:
    env: Any = open_env("gymnasium", LAKE)
    assert "one of: left, down, right, up" in env.system_prompt
    assert "<action>" in env.system_prompt
    env.reset({}, 0)
    results = [env.step(act(word)) for word in WAY]
    assert [r.reward for r in results] == [0, 0, 0, 0, 0, 1.0]
    assert [r.info["success"] for r in results] == [False] * 5 + [True]
    assert [r.info["state"] for r in results] == ["4", "8", "9", "10", "14", "15"]
    assert results[-1].terminated
    with pytest.raises(RuntimeError, match="call reset first"):
        env.step(act("left"))
    env.reset({}, 0)
    hole = [env.step(act(word)) for word in ("down", "right")][-1]
    assert (hole.terminated, hole.reward, hole.info["success"]) == (True, 0.0, False)
    env.close()


@pytest.mark.parametrize("text", ["", "left", "<action>jump</action>", "<action>left", "<action></action>"])
def test_a_text_that_is_no_action_is_answered_and_changes_nothing(text: str) -> None:
    env: Any = open_env("gymnasium", LAKE)
    first = env.reset({}, 0)
    result = env.step(text)
    assert (result.reward, result.terminated, result.truncated) == (0.0, False, False)
    assert result.info["invalid"] is True
    assert result.info["success"] is False
    assert "one of: left, down, right, up, such as <action>" in result.observation.text
    assert np.array_equal(result.observation.images[0], first.images[0])
    assert [env.step(act(word)).info["success"] for word in WAY][-1]
    env.close()


def test_info_holds_plain_numbers_and_vlrl_s_own_keys() -> None:
    env: Any = open_env("gymnasium", {"id": "vlrl-test/Cell-v0", "success": {"info": "won"}})
    env.reset({"options": {"grey": 7}}, 0)
    info = env.step(act('{"add": 1, "say": "go"}')).info
    assert info["count"] == 3
    assert type(info["count"]) is int
    assert {"note", "bad"} & set(info) == set()
    assert info["state"] != "theirs"
    assert info["won"] is False
    env.close()


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (None, False),
        ({"info": "won"}, False),
        ({"return_at_least": -1.0}, True),
        ({"return_at_least": -0.9}, False),
        ({"reward_at_least": -0.5}, True),
    ],
)
def test_what_is_a_success(rule: Any, expected: bool) -> None:
    env: Any = open_env("gymnasium", {"id": "vlrl-test/Cell-v0", "success": rule})
    env.reset({}, 0)
    assert env.step(act('{"add": 1, "say": "go"}')).info["success"] is False
    assert env.step(act('{"add": 1, "say": "stop"}')).info["success"] is expected
    env.close()


def test_an_episode_that_is_cut_off_is_no_success_by_itself() -> None:
    env: Any = open_env("gymnasium", {"id": "CartPole-v1", "kwargs": {"max_episode_steps": 2}})
    env.reset({}, 0)
    result = [env.step(act("0")) for _ in range(2)][-1]
    assert (result.reward, result.terminated, result.truncated) == (1.0, False, True)
    assert result.info["success"] is False
    env.close()


def test_an_image_stays_what_it_was() -> None:
    env: Any = open_env("gymnasium", {"id": "vlrl-test/Cell-v0"})
    first = env.reset({"options": {"grey": 7}}, 0).images[0]
    second = env.step(act('{"add": 2, "say": "a"}')).observation.images[0]
    assert (int(first.max()), int(second.min())) == (7, 9)
    env.close()


def test_seeds_of_63_bits_are_cut_to_what_every_environment_takes() -> None:
    env: Any = open_env("gymnasium", {"id": "Taxi-v4"})
    images = [env.reset({}, seed).images[0] for seed in (5, 2**62 + 5, 6)]
    assert np.array_equal(images[0], images[1])
    assert not np.array_equal(images[0], images[2])
    env.close()


def test_equal_states_share_a_name_and_others_do_not() -> None:
    env: Any = open_env("gymnasium", {"id": "vlrl-test/Cell-v0"})
    names = []
    for grey, adds in ((1, (2, 0)), (2, (1, 0)), (2, (2,))):
        env.reset({"options": {"grey": grey}}, 0)
        names.append([env.step(act(f'{{"add": {add}, "say": "a"}}')).info["state"] for add in adds])
    assert names[0] == names[1]
    assert names[0][0] == names[0][1] != names[2][0]
    env.close()


def test_images_are_resized_and_texts_follow_their_template() -> None:
    text = "step {step}: {observation}, {reward:.1f}"
    for size, shape in ((64, (43, 64, 3)), ([50, 20], (20, 50, 3)), (None, (400, 600, 3))):
        env: Any = open_env("gymnasium", {"id": "MountainCarContinuous-v0", "image_size": size, "text": text})
        observation = env.reset({}, 1)
        assert observation.images[0].shape == shape
        assert observation.images[0].dtype == np.uint8
        assert observation.text.startswith("step 0: [-0.")
        assert env.step(act("0.5")).observation.text.endswith(", -0.0")
        env.close()


@pytest.mark.parametrize(
    ("id", "kwargs"), [("CartPole-v1", {}), ("FrozenLake-v1", {"map_name": "8x8"}), ("Taxi-v4", {})]
)
def test_a_restored_snapshot_goes_on_identically(id: str, kwargs: Any) -> None:
    env: Any = open_env("gymnasium", {"id": id, "kwargs": kwargs})
    env.reset({}, 4)
    for _ in range(3):
        env.step(act("1"))
    kept = env.snapshot()

    def go_on(env: Any) -> Any:
        results = [env.step(act(word)) for word in ("0", "1", "0")]
        return [(r.reward, r.terminated, r.info, r.observation.images[0].tobytes()) for r in results]

    expected = go_on(env)
    env.restore(kept)
    assert go_on(env) == expected
    other: Any = open_env("gymnasium", {"id": id, "kwargs": kwargs})
    other.restore(kept)
    assert go_on(other) == expected
    env.close()
    other.close()


def test_closing_one_leaves_another_able_to_draw() -> None:
    one: Any = open_env("gymnasium", {"id": "CartPole-v1"})
    other: Any = open_env("gymnasium", {"id": "CartPole-v1"})
    one.reset({}, 1)
    first = other.reset({}, 1).images[0]
    one.close()
    assert np.array_equal(other.reset({}, 1).images[0], first)
    other.close()


def test_gymnasium_s_checker_is_asked() -> None:
    env: Any = open_env("gymnasium", {"id": "FrozenLake-v1"})
    assert not [finding for finding in env.findings() if "Error" in finding]
    env.close()
    env = open_env("gymnasium", {"id": "vlrl-test/Cell-v0", "kwargs": {"image": "wrong"}})
    findings = env.findings()
    assert findings
    assert not any("\x1b" in finding for finding in findings)
    env.close()


def test_an_image_that_is_none_is_a_broken_environment() -> None:
    for kwargs in ({"image": "wrong"}, {"channels": 4}):
        env: Any = open_env("gymnasium", {"id": "vlrl-test/Cell-v0", "kwargs": kwargs})
        with pytest.raises(TypeError, match=r"vlrl-test/Cell-v0: render gave"):
            env.reset({}, 0)
        env.close()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"id": "FrozenLake-v7"}, "FrozenLake"),
        ({"id": "NoSuchGame-v1"}, "NoSuchGame"),
        ({"id": "no_such_module:Env-v0"}, "no_such_module"),
        ({"id": "FrozenLake-v1", "kwargs": {"speed": 2}}, "speed"),
        ({"id": "FrozenLake-v1", "kwargs": {"render_mode": "human"}}, "leave it out"),
        ({"id": "FrozenLake-v1", "image_size": 0}, "image_size=0"),
        ({"id": "FrozenLake-v1", "image_size": [1, 2, 3]}, "longer side"),
        ({"id": "FrozenLake-v1", "text": "{score}"}, "score"),
        ({"id": "FrozenLake-v1", "success": {"won": 1}}, "give one of info"),
        ({"id": "FrozenLake-v1", "actions": ["a"]}, "a list names every action"),
        ({"id": "FrozenLake-v1", "colour": 1}, "colour"),
        ({"id": "vlrl-test/Silent-v0"}, "draws no rgb_array"),
    ],
)
def test_a_wrong_option_is_named(options: Any, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        open_env("gymnasium", options)


def test_a_wrong_task_is_named() -> None:
    env: Any = open_env("gymnasium", LAKE)
    with pytest.raises(ConfigError, match="level"):
        env.reset({"level": 1}, 0)
    env.close()


def test_where_gymnasium_is_missing_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    with pytest.raises(ConfigError, match=r"pip install 'vlrl\[gymnasium\]'"):
        open_env("gymnasium", LAKE)
