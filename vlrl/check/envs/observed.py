"""Checks of an observation."""

from __future__ import annotations

from typing import Any

from vlrl.environment.observe import pixels_of
from vlrl.errors import DataError
from vlrl.protocols import Observation


def problems_of(observation: Any) -> list[str]:
    """What is wrong with what an environment showed; nothing, if it can be shown to a model."""
    if not isinstance(observation, Observation):
        return [f"it is a {type(observation).__name__}; return vlrl.protocols.Observation(text, images)"]
    found = []
    text: Any = observation.text
    role: Any = observation.role
    if not isinstance(text, str):
        found.append(f"text is a {type(text).__name__}; give a str")
    if role not in ("user", "tool"):
        found.append(f"role is {role!r}; give user or tool")
    images = list(observation.images)
    for video in observation.videos:
        if not video.frames or not video.fps > 0:
            found.append(f"a video has {len(video.frames)} frames at {video.fps} a second")
        images += video.frames
    for image in images:
        try:
            pixels_of(image)
        except (ValueError, OSError) as error:  # OSError: a PIL image that is opened but cannot be read
            found.append(str(error))
    if observation.structured_outputs is not None:
        from vlrl.model.structured.forms import form_of  # brings the config, half of what a worker imports

        try:
            form_of(observation.structured_outputs, "it")
        except DataError as error:
            found.append(str(error))
    if not images and not text:
        found.append("it shows nothing: neither text nor an image")
    return found
