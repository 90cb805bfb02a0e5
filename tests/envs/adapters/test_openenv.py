"""The OpenEnv adapter against openenv-core's own server."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ecosystem import ROOT, free_port, server
from hypothesis import given
from hypothesis import strategies as st

from vlrl.environment.open import open_env
from vlrl.envs.adapters.openenv.action import ActionForm, NoOpenEnvAction
from vlrl.errors import ConfigError

FAULTS = ROOT / "tests" / "helpers" / "openenv_faults.py"

TYPED = """
from pydantic import BaseModel, field_validator

class Do(BaseModel):
    what: str

    @field_validator("what")
    @classmethod
    def not_rude(cls, value):
        if value == "rude":
            raise ValueError("be polite")
        return value
"""


@pytest.fixture(scope="module")
def faults() -> Iterator[str]:
    with server(FAULTS, 9) as url:  # one is for the step that sleeps on after its client has left
        yield url


@pytest.fixture
def env_of() -> Iterator[Callable[..., Any]]:
    """Opens environments; closes them after the test."""
    opened: list[Any] = []

    def make(url: str, **options: Any) -> Any:
        opened.append(open_env("openenv", {"url": url, **options}))
        return opened[-1]

    yield make
    for env in opened:
        env.close()


def action(**fields: Any) -> str:
    return f"<think>…</think><action>{json.dumps(fields)}</action>"


def test_an_episode_of_the_example(lights: str, env_of: Callable[..., Any]) -> None:
    env = env_of(lights)
    assert '"light"' in env.system_prompt and "metadata" not in env.system_prompt
    shown = env.reset({"num_on": 1}, seed=4)
    assert shown.text == "Switch all four lights on." and shown.images[0].size == (56, 56)
    on = [shown.images[0].getpixel((14 * i + 7, 28)) == (255, 255, 0) for i in range(4)]
    assert sum(on) == 1
    results = [env.step(action(light=i)) for i in range(4) if not on[i]]
    assert [r.observation.text for r in results] == ["2 of 4 are on.", "3 of 4 are on.", "4 of 4 are on."]
    assert [(r.reward, r.terminated) for r in results] == [(0.0, False), (0.0, False), (1.0, True)]
    assert results[-1].info == {"success": True}
    assert env.state()["step_count"] == 3
    env.close()
    env.close()


def test_the_same_seed_gives_the_same_pixels_and_sessions_are_apart(
    lights: str, env_of: Callable[..., Any]
) -> None:
    envs = [env_of(lights, actions={"first": {"light": 0}}) for _ in range(3)]
    images = [np.asarray(env.reset({}, seed).images[0]) for env, seed in zip(envs, (5, 5, 6), strict=True)]
    assert np.array_equal(images[0], images[1])
    changed = np.asarray(envs[0].step("<action>First</action>").observation.images[0])
    assert not np.array_equal(changed, images[0])
    assert np.array_equal(np.asarray(envs[1].reset({}, 5).images[0]), images[0])
    assert len({envs[2].reset({}, seed).images[0].tobytes() for seed in range(8)}) > 1


def test_what_the_server_refuses_is_answered_and_the_session_goes_on(
    lights: str, env_of: Callable[..., Any]
) -> None:
    env = env_of(lights)
    env.reset({}, 0)
    for text, said in [
        ("I press it.", "There is no action"),
        ("<action>press 1</action>", "no JSON"),
        ("<action>[1]</action>", "no JSON object"),
        (action(light=7), "light: Input should be less than or equal to 3"),
        (action(), "light: Field required"),
        (action(light=1, url="http://127.0.0.1:1"), "url: Extra inputs are not permitted"),
        (f"<action>{'9' * 30_000}</action>", "20000 at most"),
    ]:
        result = env.step(text)
        assert said in result.observation.text and "<action>" in result.observation.text
        assert (result.reward, result.terminated, result.info) == (0.0, False, {"invalid": True})
    assert "of 4 are on." in env.step(action(light=1)).observation.text
    assert env.state()["step_count"] == 1
    env.close()


def test_random_actions_are_played(lights: str, env_of: Callable[..., Any]) -> None:
    for options in ({}, {"actions": {"one": {"light": 1}, "two": {"light": 2}}}):
        env = env_of(lights, **options)
        env.reset({}, 0)
        for seed in range(6):
            text = env.random_action(np.random.default_rng(seed))
            assert text == env.random_action(np.random.default_rng(seed))
            assert not env.step(text).info.get("invalid")
        env.close()


def test_a_field_a_template_and_the_reward_of_none(faults: str, env_of: Callable[..., Any]) -> None:
    env = env_of(faults, field="what", text="{what}/{number}", success_above=0.6)
    shown = env.reset({"level": 3, "seed": 7}, 0)
    assert shown.text == "[('level', 3)]/7"
    assert env.step('<action> say "hi" </action>').observation.text == 'say "hi"/1'
    assert env.step("<action>half: \ud83d</action>").observation.text == "half: ?/2"
    assert [env.step(f"<action>{what}</action>").reward for what in ("half", "none", "half")] == [
        0.5,
        0.0,
        0.5,
    ]
    assert env.step("<action>end</action>").info == {"success": True}
    assert json.loads(env_of(faults).reset({"seed": 7}, 0).text) == {"what": "[]", "number": 7}
    env.close()


def test_a_typed_action_is_checked_here(faults: str, tmp_path: Path, env_of: Callable[..., Any]) -> None:
    (tmp_path / "models.py").write_text(TYPED)
    env = env_of(faults, action_class=f"{tmp_path}/models.py:Do")
    env.reset({}, 0)
    refused = env.step(action(what="rude"))
    assert refused.info == {"invalid": True} and "be polite" in refused.observation.text
    assert not env.step(action(what="kind")).info.get("invalid")
    env.close()


def test_what_breaks_on_the_server_is_raised_and_the_next_episode_runs(
    faults: str, env_of: Callable[..., Any]
) -> None:
    env = env_of(faults, field="what", timeout_s=0.5)
    for what, error, said in [
        ("raise", ConnectionError, "EXECUTION_ERROR: the environment is broken"),
        ("sleep", TimeoutError, r"no answer to step within 0.5 s"),
    ]:
        env.reset({}, 0)
        with pytest.raises(error, match=said):
            env.step(f"<action>{what}</action>")
    assert env.reset({"seed": 3}, 0).text
    with pytest.raises(ValueError, match="over at its reset"):
        env.reset({"over": True}, 0)
    env.close()


def test_a_server_that_dies_or_is_away_or_full_says_so(env_of: Callable[..., Any]) -> None:
    with server(FAULTS, 1) as url:
        env = env_of(url, field="what")
        env.reset({}, 0)
        with pytest.raises(ConnectionError, match="max_concurrent_envs"):
            env_of(url, field="what").reset({}, 0)
        for _ in range(5):  # a session that is closed has left its place when close returns
            env.close()
            env.reset({}, 0)
        with pytest.raises(ConnectionError, match="went away during step"):
            env.step("<action>die</action>")
        with pytest.raises(ConnectionError, match=f"no OpenEnv server answers at {url}"):
            env.reset({}, 0)
        env.close()


def test_no_server(env_of: Callable[..., Any]) -> None:
    url = f"ws://127.0.0.1:{free_port()}/"
    with pytest.raises(ConnectionError, match="start it, or correct url"):
        env_of(url, field="what").reset({}, 0)
    with pytest.raises(ConnectionError, match=r"gives its schema at http://.*/schema"):
        env_of(url)


def test_many_sessions_at_once(faults: str, env_of: Callable[..., Any]) -> None:
    def play(seed: int) -> list[str]:
        env = env_of(faults, field="what", text="{number}")
        texts = [env.reset({"seed": seed}, 0).text]
        texts += [env.step("<action>go</action>").observation.text for _ in range(5)]
        env.close()
        return texts

    with ThreadPoolExecutor(8) as pool:
        played = list(pool.map(play, range(24)))
    assert played == [[str(seed), "1", "2", "3", "4", "5"] for seed in range(24)]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"url": "somewhere"}, "is not an address"),
        ({"url": "file:///etc/passwd"}, "is not an address"),
        ({"url": "http://127.0.0.1:1", "field": "a", "actions": {"x": {}}}, "actions and field are given"),
        ({"url": "http://127.0.0.1:1", "actions": {"x": 3}}, "must map words to actions"),
        ({"url": "http://127.0.0.1:1", "action_class": f"{__file__}:ROOT"}, "no pydantic model"),
        ({"url": "http://127.0.0.1:1", "uri": "x"}, "does not take the options"),
    ],
)
def test_wrong_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        open_env("openenv", options)


@given(st.text() | st.text().map(lambda text: f"<action>{text}</action>"))
def test_any_text_is_read_or_answered(text: str) -> None:
    schema = {"type": "object", "properties": {"light": {"type": "integer"}}, "required": ["light"]}
    for form in (
        ActionForm(None, None, None, schema),
        ActionForm({"left": {"light": 0}}, None, None, None),
        ActionForm(None, "say", None, None),
    ):
        try:
            assert isinstance(form.read(text), dict)
        except NoOpenEnvAction as error:
            assert "<action>" in str(error)


@given(
    st.dictionaries(st.text(min_size=1), st.integers(-(2**53), 2**53) | st.text() | st.booleans(), max_size=4)
)
def test_every_action_comes_back_from_its_text(fields: dict[str, Any]) -> None:
    text = json.dumps(fields).replace("<", "\\u003c")
    assert ActionForm(None, None, None, {}).read(f"<action>{text}</action>") == fields


def test_words_are_drawn_evenly() -> None:
    form = ActionForm({"left": {"x": 0}, "right": {"x": 1}}, None, None, None)
    drawn = [form.read(form.draw(np.random.default_rng(seed)))["x"] for seed in range(200)]
    assert 60 < sum(drawn) < 140
    assert [len(list(group)) for _, group in itertools.groupby(drawn)] != [100, 100]
