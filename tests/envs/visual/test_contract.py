"""What every registered visual environment keeps to: right play scores, the same seed shows the same pixels.

`python tests/envs/visual/test_contract.py` writes pixels.json again, the hashes that prove that all machines
draw the same. Do so after an image was changed on purpose (or Pillow's version), and look at it first.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vlrl.environment.open import open_env
from vlrl.envs.visual.question import QuestionEnv
from vlrl.errors import ConfigError
from vlrl.protocols import Observation, StepResult
from vlrl.registry import BUILT_IN

NAMES = sorted(name for name in BUILT_IN["envs"] if name.startswith("visual/"))
PIXELS = Path(__file__).with_name("pixels.json")
MAX_TURNS = 200
SMALL = 112
"""Images of tests that do not look at them."""

JUNK = (
    "",
    "   ",
    "I think it is on the left.",
    "<answer></answer>",
    "<answer>",
    "</answer><answer>",
    "<answer>the answer</answer> and more",
    "<answer>[1, 2</answer>",
    "<answer>{{{{</answer>",
    "<action></action>",
    "<action>fly</action>",
    "<tool_call>{</tool_call>",
    '<tool_call>{"name": "rm", "arguments": {}}</tool_call>',
    "\x00\ud800é",
    "<answer>" * 20_000,
    "<answer>" + "9" * 100_000 + "</answer>",
    "<answer>" + "[" * 100_000 + "</answer>",
)


def open_small(name: str, **options: Any) -> Any:
    return open_env(name, {"image_size": SMALL, **options})


def levels_of(name: str) -> range:
    return range(1, open_small(name).num_levels + 1)


def digest(observation: Observation) -> str:
    """Digest of all that the policy is shown."""
    found = hashlib.sha256(repr((observation.text, observation.role)).encode())
    frames = [*observation.images, *(frame for video in observation.videos for frame in video.frames)]
    for frame in frames:
        pixels = np.asarray(frame)
        assert pixels.dtype == np.uint8
        assert pixels.ndim == 3
        assert pixels.shape[2] == 3
        found.update(repr(pixels.shape).encode() + pixels.tobytes())
    found.update(repr([video.fps for video in observation.videos]).encode())
    return found.hexdigest()


def play(env: Any, seed: int, level: int) -> tuple[list[StepResult], list[str]]:
    """An episode by the oracle: every result, and the digest of everything that was shown."""
    results, shown = [], [digest(env.reset({"level": level}, seed))]
    for _ in range(MAX_TURNS):
        results.append(env.step(env.oracle()))
        shown.append(digest(results[-1].observation))
        if results[-1].terminated or results[-1].truncated:
            break
    return results, shown


def pixels_of(name: str) -> dict[str, str]:
    """One digest a level, of an episode's opening and its first steps at the default size."""
    env = open_env(name, {})
    found = {}
    for level in range(1, env.num_levels + 1):
        digests = []
        for seed in (0, 1):
            digests.append(digest(env.reset({"level": level}, seed)))
            digests.append(digest(env.step(env.oracle()).observation))
        found[str(level)] = hashlib.sha256("".join(digests).encode()).hexdigest()
    return found


@pytest.mark.parametrize("name", NAMES)
def test_the_oracle_scores_one_on_every_level(name: str) -> None:
    env = open_small(name)
    num_seeds = 200 if isinstance(env, QuestionEnv) else 20  # those of several steps have tests of their own
    for level in levels_of(name):
        for seed in range(num_seeds):
            results, _ = play(env, seed, level)
            place = f"{name} level {level} seed {seed}"
            assert sum(result.reward for result in results) == pytest.approx(1.0), place
            assert results[-1].terminated, place
            assert not results[-1].truncated, place
            assert results[-1].info["success"] is True, place
            assert not any(result.info["invalid"] for result in results), place


@pytest.mark.parametrize("name", NAMES)
def test_the_same_seed_shows_the_same_whatever_was_played_before(name: str) -> None:
    one, other = open_small(name), open_small(name)
    for level in levels_of(name):
        first = play(one, 3, level)
        other.reset({"level": level}, 4)
        second = play(other, 3, level)
        assert first[1] == second[1]
        assert [r.info["state"] for r in first[0]] == [r.info["state"] for r in second[0]]
        assert [r.reward for r in first[0]] == [r.reward for r in second[0]]


@pytest.mark.parametrize("name", NAMES)
def test_pixels_are_those_that_were_pinned(name: str) -> None:
    pinned = json.loads(PIXELS.read_text())
    assert name in pinned, f"{name} is new: run python {Path(__file__).name}"
    assert pixels_of(name) == pinned[name]


@pytest.mark.parametrize("name", NAMES)
def test_other_seeds_show_something_else(name: str) -> None:
    """Two turns are compared: of two episodes that are an image each of 1,400 the first may be the same."""
    env = open_small(name)

    def shown(seed: int) -> tuple[str, str]:
        first = env.reset({"level": env.num_levels}, seed)
        return digest(first), digest(env.step(env.oracle()).observation)

    assert len({shown(seed) for seed in range(20)}) == 20


@pytest.mark.parametrize("name", NAMES)
def test_the_level_is_drawn_from_a_range_and_a_task_goes_before_the_option(name: str) -> None:
    env = open_small(name, level=[1, 2])
    seen = []
    for seed in range(16):
        env.reset({}, seed)
        seen.append(env.step(env.oracle()).info["level"])
    assert set(seen) == {1, 2}
    env.reset({"level": env.num_levels}, 0)
    assert env.step(env.oracle()).info["level"] == env.num_levels


@pytest.mark.parametrize("name", NAMES)
def test_text_that_is_no_action_is_answered(name: str) -> None:
    env = open_small(name)
    for junk in JUNK:
        env.reset({}, 0)
        result = env.step(junk)
        assert result.info["invalid"] is True, junk[:60]
        assert result.info["success"] is False, junk[:60]
        assert result.reward == 0, junk[:60]
        assert result.observation.text, junk[:60]


@pytest.mark.parametrize("name", NAMES)
def test_thinking_before_an_action_is_allowed(name: str) -> None:
    env = open_small(name)
    env.reset({}, 5)
    result = env.step(
        f"<think>I look. <answer>not this</answer> <action>nor this</action></think>\n{env.oracle()} \n"
    )
    assert result.info["invalid"] is False


@pytest.mark.parametrize("name", NAMES)
def test_random_actions_are_well_formed_and_drawn_from_the_generator(name: str) -> None:
    env = open_small(name)
    for level in levels_of(name):
        for seed in range(20):
            env.reset({"level": level}, seed)
            action = env.random_action(np.random.default_rng(seed))
            assert action == env.random_action(np.random.default_rng(seed))
            assert env.step(action).info["invalid"] is False, action


@pytest.mark.parametrize("name", NAMES)
def test_equal_states_have_equal_names_and_show_the_same(name: str) -> None:
    env, rng = open_small(name), np.random.default_rng(0)
    for level in levels_of(name):
        env.reset({"level": level}, 2)
        shown: dict[str, str] = {}
        for _ in range(30):
            result = env.step(env.random_action(rng))
            state = result.info["state"]
            assert isinstance(state, str)
            assert state
            images = digest(Observation(images=result.observation.images, videos=result.observation.videos))
            assert shown.setdefault(state, images) == images
            if result.terminated or result.truncated:
                break


@pytest.mark.parametrize("name", NAMES)
def test_it_can_be_reset_in_the_middle_and_closed_twice(name: str) -> None:
    env = open_small(name)
    env.close()
    opening = digest(env.reset({}, 1))
    env.step(env.random_action(np.random.default_rng(0)))
    assert digest(env.reset({}, 1)) == opening
    assert digest(env.reset({}, 1)) == opening
    env.close()
    env.close()
    assert digest(env.reset({}, 1)) == opening


@pytest.mark.parametrize("name", NAMES)
def test_images_have_the_size_that_was_asked_for(name: str) -> None:
    for size in (112, 224, 336):
        observation = open_env(name, {"image_size": size}).reset({}, 0)
        frames = [*observation.images, *(frame for video in observation.videos for frame in video.frames)]
        assert frames
        assert {np.asarray(frame).shape for frame in frames} == {(size, size, 3)}


@pytest.mark.parametrize("name", NAMES)
def test_wrong_options_and_tasks_are_refused_by_name(name: str) -> None:
    top = open_small(name).num_levels
    for level in (0, top + 1, [1, top + 1], [2, 1], [1], "2", 1.5, True, None):
        with pytest.raises(ConfigError, match=rf"{name}.*level"):
            open_env(name, {"level": level})
        with pytest.raises(ConfigError, match=rf"{name}.*level"):
            open_env(name, {}).reset({"level": level}, 0)
    for size in (10, 100_000, "224", 224.0):
        with pytest.raises(ConfigError, match="image_size"):
            open_env(name, {"image_size": size})
    with pytest.raises(ConfigError, match="colour"):
        open_env(name, {"colour": "red"})
    with pytest.raises(ConfigError, match="colour"):
        open_env(name, {}).reset({"colour": "red"}, 0)


@pytest.mark.parametrize("name", NAMES)
def test_the_system_prompt_tells_the_form_of_an_action(name: str) -> None:
    prompt = open_small(name).system_prompt
    assert any(tag in prompt for tag in ("<answer>", "<action>", "<tool_call>"))


@pytest.mark.parametrize("name", NAMES)
def test_playing_on_without_an_episode_is_an_error(name: str) -> None:
    env = open_small(name)
    with pytest.raises(RuntimeError, match="reset"):
        env.step("<answer>1</answer>")
    env.reset({}, 0)
    env.close()
    with pytest.raises(RuntimeError, match="reset"):
        env.step("<answer>1</answer>")


if __name__ == "__main__":
    PIXELS.write_text(json.dumps({name: pixels_of(name) for name in NAMES}, indent=1) + "\n")
