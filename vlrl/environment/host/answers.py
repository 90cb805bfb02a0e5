"""What an environment returns, checked and made plain: the driver's own, wherever the environment runs.

Images are copied, since an environment may render the next one into the same array, but where they are sent
to another process at once; of `info` the numbers and texts are kept; every value is of a class that the
driver knows.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from vlrl.environment.host.failure import EnvFailure
from vlrl.foreign.failure import finite
from vlrl.protocols import Observation, StepResult, Video


class Traits(NamedTuple):
    """Properties of an environment that do not change between episodes."""

    system_prompt: str
    tools: Sequence[Mapping[str, Any]]
    system_prompts: Mapping[str, str]
    """The instructions of each agent of a `MultiAgentEnv`; empty for an `Env`."""
    sees: bool = False
    """True of an environment that wants to know how its images were shown."""
    snapshots: bool = False
    """True of an environment whose state can be taken and restored."""
    ends_episodes: bool = False
    """True of an environment that wants to know when an episode is over."""


def traits_of(env: Any) -> Traits:
    """Its instructions and tools.

    Raises:
        EnvFailure: if they are not text, or no JSON.
    """
    prompt, tools = getattr(env, "system_prompt", ""), getattr(env, "tools", ())
    prompts = getattr(env, "system_prompts", {})
    of_agents = {str(a): _text(prompts.get(a, ""), "system_prompts") for a in getattr(env, "agents", ())}
    try:
        schemas = json.loads(json.dumps(list(tools)))
        return Traits(
            _text(prompt, "system_prompt"),
            schemas,
            of_agents,
            sees=callable(getattr(env, "seen", None)),
            snapshots=all(callable(getattr(env, name, None)) for name in ("snapshot", "restore")),
            ends_episodes=callable(getattr(env, "end_episode", None)),
        )
    except (TypeError, ValueError) as error:
        raise EnvFailure("raised", f"tools are not a list of JSON schemas: {error}") from error


def checked(method: str, returned: Any, *, for_agents: bool = False, copies: bool = True) -> Any:
    """What `reset`, `step`, `snapshot` or any other method returned; of a `MultiAgentEnv`, for each agent.

    A snapshot is given as bytes: it may be of a class that only the environment's own process knows.

    Args:
        method: that was called.
        returned: by it.
        for_agents: whether it may be one for each agent.
        copies: False where the answer is sent before the next call; its arrays are the environment's own.

    Raises:
        EnvFailure: saying what is wrong with it.
    """
    if for_agents and isinstance(returned, Mapping) and method in ("reset", "step"):
        return {str(agent): checked(method, of_one, copies=copies) for agent, of_one in returned.items()}
    match method:
        case "reset":
            return _observation(returned, "reset", copies)
        case "step":
            return _step(returned, copies)
        case "snapshot":
            return _pickled(returned)
        case _:
            return None


def _pickled(state: Any) -> bytes:
    try:
        return pickle.dumps(state, pickle.HIGHEST_PROTOCOL)
    except Exception as error:  # of a stranger's classes
        raise EnvFailure("raised", f"its snapshot, {_kind(state)}, cannot be pickled: {error}") from error


def _step(returned: Any, copies: bool) -> StepResult:
    if not isinstance(returned, StepResult):
        raise EnvFailure("raised", f"step returned {_kind(returned)}, not a StepResult")
    try:
        reward = finite(returned.reward, "reward")
    except ValueError as error:
        raise EnvFailure("raised", f"step returned {error}") from error
    if not isinstance(returned.info, Mapping):
        raise EnvFailure("raised", f"info is {_kind(returned.info)}, not a mapping")
    return StepResult(
        _observation(returned.observation, "step", copies),
        reward,
        _flag(returned.terminated, "terminated"),
        _flag(returned.truncated, "truncated"),
        {str(key): plain for key, value in returned.info.items() if (plain := _plain(value)) is not None},
    )


def _observation(returned: Any, method: str, copies: bool) -> Observation:
    if not isinstance(returned, Observation):
        raise EnvFailure("raised", f"{method} returned {_kind(returned)}, not an Observation")
    if returned.role not in ("user", "tool"):
        raise EnvFailure("raised", f"observation.role is {returned.role!r}, not 'user' or 'tool'")
    return Observation(
        _text(returned.text, "observation.text"),
        tuple(_image(image, "observation.images", copies) for image in _several(returned.images, "images")),
        tuple(_video(video, copies) for video in _several(returned.videos, "videos")),
        "tool" if returned.role == "tool" else "user",
        _text(returned.summary, "observation.summary"),
        _form(returned.structured_outputs),
    )


def _form(given: Any) -> Any:
    """A copy of an observation's structured_outputs; what it says is checked where it is used."""
    try:
        copied = json.loads(json.dumps(given))
    except (TypeError, ValueError) as error:
        raise EnvFailure("raised", f"observation.structured_outputs is not JSON: {error}") from error
    if copied is not None and not isinstance(copied, dict):
        raise EnvFailure("raised", f"observation.structured_outputs is {_kind(given)}, not a mapping")
    return copied


def _several(given: Any, name: str) -> Any:
    if isinstance(given, str | bytes | Mapping) or not hasattr(given, "__iter__"):
        raise EnvFailure("raised", f"observation.{name} is {_kind(given)}, not a sequence")
    return given


def _video(given: Any, copies: bool) -> Video:
    if not isinstance(given, Video):
        raise EnvFailure("raised", f"observation.videos has {_kind(given)}, not a vlrl.protocols.Video")
    try:
        fps = finite(given.fps, "fps of a video")
    except ValueError as error:
        raise EnvFailure("raised", str(error)) from error
    frames = _several(given.frames, "videos' frames")
    return Video(tuple(_image(frame, "observation.videos", copies) for frame in frames), fps)


def _image(given: Any, name: str, copies: bool) -> Any:
    """A copy, unless `copies` is False: an array, or a PIL image that says more than an array can."""
    if isinstance(given, np.ndarray):
        if given.dtype != np.uint8 or given.ndim != 3 or given.shape[2] != 3 or not given.size:
            raise EnvFailure(
                "raised",
                f"{name} has an array of shape {list(given.shape)} and type {given.dtype}; "
                "give [height, width, 3] uint8, or a PIL image",
            )
        return np.array(given) if copies or not given.flags.c_contiguous else given
    from PIL import Image

    if not isinstance(given, Image.Image):
        raise EnvFailure("raised", f"{name} has {_kind(given)}; give arrays or PIL images")
    return np.array(given) if given.mode == "RGB" and not given.info else given.copy()


def _text(given: Any, name: str) -> str:
    if not isinstance(given, str):
        raise EnvFailure("raised", f"{name} is {_kind(given)}, not a text")
    return str(given)


def _flag(given: Any, name: str) -> bool:
    if not isinstance(given, bool | np.bool_):
        raise EnvFailure("raised", f"step returned {name}={repr(given)[:100]}, which is not true or false")
    return bool(given)


def _plain(value: Any) -> bool | int | float | str | None:
    """A number or text as Python's own; None for anything else."""
    if isinstance(value, np.generic):
        value = value.item()
    for kind in (bool, int, float, str):
        if isinstance(value, kind):
            return kind(value)
    return None


def _kind(value: Any) -> str:
    return "None" if value is None else f"a {type(value).__name__}"
