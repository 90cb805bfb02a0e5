"""Observations are the driver's own, and the same wherever the environment runs."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from hostile_envs import FILE
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from PIL import Image

from vlrl.config.rollout import EnvConfig
from vlrl.environment.host.answers import checked
from vlrl.environment.host.failure import EnvFailure
from vlrl.environment.host.frames import dumps, loads
from vlrl.environment.host.host import EnvHost
from vlrl.protocols import Observation, StepResult, Video
from vlrl.types import EnvTask


async def images(on: EnvHost, kind: str) -> list[Observation]:
    env = await on.open(EnvTask(f"{FILE}:Images", {"kind": kind}, {}, 1))
    try:
        seen = [await env.reset(), (await env.step("2")).observation, (await env.step("3")).observation]
    finally:
        await env.close()
    return seen


def pixels(observation: Observation) -> list[int]:
    """The value of each image, which must be of one."""
    images = [*observation.images, *(frame for video in observation.videos for frame in video.frames)]
    values = [
        np.unique(np.asarray(image.convert("RGB") if hasattr(image, "convert") else image))
        for image in images
    ]
    assert all(len(each) == 1 for each in values)
    return [int(each[0]) for each in values]


@pytest.mark.parametrize("isolation", ["inline", "thread", "process"])
def test_an_image_stays_as_it_was_when_the_next_one_is_drawn(isolation: Any) -> None:
    with EnvHost(EnvConfig(isolation=isolation), max_open=1) as on:
        for kind, kept in (("array", np.ndarray), ("pil", np.ndarray), ("palette", Image.Image)):
            seen = asyncio.run(images(on, kind))
            assert [pixels(observation) for observation in seen] == [[1], [2], [3]]
            assert all(type(observation.images[0]) is kept for observation in seen)
        seen = asyncio.run(images(on, "video"))
        assert [pixels(observation) for observation in seen] == [[1, 1], [2, 2], [3, 3]]
        assert seen[0].videos[0].fps == 2.0


uint8 = arrays.arrays(np.uint8, st.tuples(st.integers(1, 9), st.integers(1, 9), st.just(3)))
texts = st.text(max_size=9)
observations = st.builds(
    Observation,
    texts,
    st.lists(uint8, max_size=3),
    st.lists(st.builds(Video, st.lists(uint8, min_size=1, max_size=3), st.floats(0.1, 60)), max_size=2),
    st.sampled_from(["user", "tool"]),
    texts,
)
results = st.builds(
    StepResult,
    observations,
    st.floats(allow_nan=False, allow_infinity=False) | st.booleans() | st.integers(-9, 9),
    st.booleans(),
    st.booleans(),
    st.dictionaries(texts, st.floats(allow_nan=False) | st.booleans() | st.integers() | texts, max_size=3),
)


def same(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray):
        return np.array_equal(one, other)
    if isinstance(one, Observation):
        fields = ("text", "images", "videos", "role", "summary")
        return all(same(getattr(one, name), getattr(other, name)) for name in fields)
    if isinstance(one, Video):
        return one.fps == other.fps and same(one.frames, other.frames)
    if isinstance(one, Sequence) and not isinstance(one, str):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


@given(results)
@settings(deadline=None, max_examples=60)
def test_a_right_answer_passes_every_check_and_the_way_unchanged(result: StepResult) -> None:
    for received in (checked("step", result), loads(bytearray(b"".join(dumps(checked("step", result)))))):
        assert same(received.observation, result.observation)
        assert (received.reward, received.terminated, received.truncated) == (
            float(result.reward),
            result.terminated,
            result.truncated,
        )
        assert received.info == result.info
        arrays_of = [
            *received.observation.images,
            *(f for v in received.observation.videos for f in v.frames),
        ]
        assert all(array.flags.writeable for array in arrays_of)


def test_numbers_of_numpy_become_pythons_own() -> None:
    info: Mapping[str, Any] = {
        "a": np.float32(0.5),
        "b": np.bool_(True),
        "c": np.int64(3),
        "d": [1],
        "e": None,
    }
    received = checked("step", StepResult(Observation(), np.float32(2), np.bool_(False), np.True_, info))
    assert (received.reward, received.terminated, received.truncated) == (2.0, False, True)
    assert {key: type(value) for key, value in received.info.items()} == {"a": float, "b": bool, "c": int}


def test_several_agents_are_answered_each() -> None:
    answers = {
        "red": StepResult(Observation("a"), 1, False, False),
        "blue": StepResult(Observation("b"), 2, True, False),
    }
    received = checked("step", answers, for_agents=True)
    assert {agent: (each.observation.text, each.reward) for agent, each in received.items()} == {
        "red": ("a", 1.0),
        "blue": ("b", 2.0),
    }
    with pytest.raises(EnvFailure, match="returned None, not a StepResult"):
        checked("step", {"red": answers["red"], "blue": None}, for_agents=True)


@pytest.mark.parametrize("given", [{"regex": "a"}, {"json_schema": {"type": "object"}}, None])
def test_a_form_is_a_copy(given: Any) -> None:
    kept = checked("reset", Observation("a", structured_outputs=given)).structured_outputs
    assert kept == given and (given is None or kept is not given)


@pytest.mark.parametrize("given", ["[0-9]", ["a"], {"choice": {"a", "b"}}])
def test_what_is_no_mapping_of_json_is_no_form(given: Any) -> None:
    with pytest.raises(EnvFailure, match=r"observation\.structured_outputs is "):
        checked("reset", Observation("a", structured_outputs=given))
