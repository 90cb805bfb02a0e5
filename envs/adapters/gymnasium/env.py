"""Any Gymnasium environment that draws rgb_array images, by its id."""

from __future__ import annotations

import re
import threading
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from vlrl.envs.adapters.gymnasium.grammar import grammar_of
from vlrl.envs.adapters.gymnasium.spaces import NoAction
from vlrl.envs.adapters.packages import load
from vlrl.envs.adapters.turns import AdapterTurn, Episode, Showing, prompt, tagged
from vlrl.errors import ConfigError
from vlrl.protocols import Observation, StepResult
from vlrl.types import ByteArray

DRAWING = threading.Lock()
"""pygame has one state for a process, which a closing environment ends: one thread at a time."""


class Gymnasium:
    """A Gymnasium environment: its image is the observation, the text in <action> is its action.

    Reward, terminated and truncated are its own, so are the plain numbers of its info. Success is what the
    option `success` says. The observation names the state.
    """

    def __init__(
        self,
        id: str,
        kwargs: Mapping[str, Any] | None = None,
        actions: Mapping[str, Any] | Sequence[str] | None = None,
        image_size: int | Sequence[int] | None = None,
        text: str = "",
        success: Mapping[str, Any] | None = None,
        instructions: str = "",
    ) -> None:
        """Make the environment.

        Args:
            id: as gymnasium.make takes it; "module:Name-v0" imports the module first.
            kwargs: gymnasium.make's other arguments, such as max_episode_steps, and the environment's own.
            actions: the grammar, see `vlrl.envs.adapters.gymnasium.grammar`; None takes it from the action
                space.
            image_size: the longer side of the images in pixels, or [width, height]; None as drawn.
            text: template of an observation's text: {observation}, {reward}, {step}, {info}.
            success: {info: key}, {reward_at_least: x} or {return_at_least: x}; None is an episode that
                terminates with a reward above 0.
            instructions: put before the action's form in the system prompt.

        Raises:
            ConfigError: for an unknown id, an environment that does not draw, or another wrong option.
        """
        self._id, self._kwargs = id, dict(kwargs or {})
        self._showing = Showing("gymnasium", image_size, text, success)
        self._env = make(id, self._kwargs, "gymnasium")
        try:
            self.grammar = grammar_of(self._env.action_space, actions, "gymnasium")
        except ConfigError:
            self.close()
            raise
        self.system_prompt = prompt(instructions, self.grammar)
        self._episode: Episode | None = None
        self._played: dict[str, Any] = {}

    def reset(self, task: Mapping[str, Any], seed: int) -> Observation:
        """Start an episode.

        Args:
            task: {} or {"options": the environment's own reset options}.
            seed: given to the environment's reset, modulo 2**31.

        Raises:
            ConfigError: for another key in `task`.
        """
        arguments = reset_arguments(task, seed, "gymnasium")
        self._played = {"task": dict(task), "seed": seed, "actions": []}
        observation, info = self._env.reset(**arguments)
        self._episode = Episode(self._showing, self.grammar)
        return self._episode.begin(AdapterTurn(observation, draw(self._env, self._id), info=info))

    def step(self, action: str) -> StepResult:
        """Apply the last <action>…</action> of a text.

        Raises:
            RuntimeError: before `reset` and after the end.
        """
        episode = running(self._episode, "gymnasium")
        try:
            parsed = episode.read(action)
        except NoAction as error:
            return episode.refuse(error)
        return self._apply(episode, parsed)

    def _apply(self, episode: Episode, action: Any) -> StepResult:
        observation, reward, terminated, truncated, info = self._env.step(action)
        self._played["actions"].append(action)
        image = draw(self._env, self._id)
        return episode.after(
            AdapterTurn(observation, image, float(reward), bool(terminated), bool(truncated), info)
        )

    def random_action(self, rng: np.random.Generator) -> str:
        """Any action of the grammar."""
        return tagged(self.grammar, self.grammar.sample(rng))

    def snapshot(self) -> dict[str, Any]:
        """The episode so far: task, seed, actions. Few environments can be copied while they draw."""
        return {**self._played, "actions": list(self._played["actions"])}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Play a snapshot's episode again; right for environments that do as their seed says."""
        self.reset(state["task"], state["seed"])
        for action in state["actions"]:
            self._apply(running(self._episode, "gymnasium"), action)

    def findings(self) -> list[str]:
        """What Gymnasium's own checker says of a fresh copy of the environment."""
        return checked(self._id, self._kwargs)

    def close(self) -> None:
        """Close the environment."""
        with DRAWING:
            self._env.close()
        self._episode = None


def make(id: str, kwargs: Mapping[str, Any], adapter: str) -> Any:
    """A Gymnasium environment that draws rgb_array images.

    Raises:
        ConfigError: if there is none of that id, or it cannot draw them.
    """
    gym = load("gymnasium", adapter, "vlrl[gymnasium]")
    if kwargs.keys() & {"render_mode"}:
        raise ConfigError(f"env {adapter}: option kwargs: render_mode is always rgb_array; leave it out")
    try:
        env = gym.make(id, render_mode="rgb_array", **kwargs)
    except (gym.error.Error, ImportError) as error:
        raise ConfigError(f"env {adapter}: option id={id!r}: {error}") from error
    modes = env.metadata.get("render_modes", [])
    if "rgb_array" not in modes:
        env.close()
        raise ConfigError(f"env {adapter}: {id!r} draws no rgb_array images, only {modes}")
    return env


def reset_arguments(task: Mapping[str, Any], seed: int, adapter: str) -> dict[str, Any]:
    """What a task and a seed are to a Gymnasium or PettingZoo environment's reset.

    Raises:
        ConfigError: for a key that no task has.
    """
    if task.keys() - {"options"}:
        raise ConfigError(f"env {adapter}: a task is {{}} or {{options: …}}, not {dict(task)}")
    return {"seed": seed % 2**31, "options": task.get("options")}


def draw(env: Any, id: str) -> ByteArray:
    """The environment's image, [h, w, 3] uint8.

    Raises:
        TypeError: if what it draws is none.
    """
    with DRAWING:
        image = np.array(env.render(), order="C")  # a copy: some draw into the same memory again
    if image.ndim != 3 or image.shape[2] != 3 or image.dtype != np.uint8:
        raise TypeError(f"{id}: render gave {image.shape} {image.dtype}, not an [h, w, 3] uint8 image")
    return image


def running(episode: Episode | None, adapter: str) -> Episode:
    """The episode, if there is one to go on with.

    Raises:
        RuntimeError: otherwise.
    """
    if episode is None or episode.ended:
        raise RuntimeError(f"env {adapter}: no episode is running; call reset first")
    return episode


def checked(id: str, kwargs: Mapping[str, Any]) -> list[str]:
    """What gymnasium.utils.env_checker.check_env says of a fresh environment: failures and warnings."""
    env = make(id, kwargs, "gymnasium")
    checker = load("gymnasium.utils.env_checker", "gymnasium", "vlrl[gymnasium]")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            checker.check_env(env.unwrapped)
        except Exception as error:  # a stranger's environment under a stranger's checker
            failure = [f"{type(error).__name__}: {error}"]
        else:
            failure = []
    env.close()
    return [*failure, *dict.fromkeys(_plain_text(str(warning.message)) for warning in caught)]


def _plain_text(message: str) -> str:
    """Message without the colours of a terminal."""
    return re.sub(r"\x1b\[[0-9;]*m", "", message).removeprefix("WARN: ")
