"""What an environment shows, as a message of a conversation."""

from __future__ import annotations

from typing import Any

from vlrl.protocols import Observation


def parts_of(observation: Observation) -> list[dict[str, Any]]:
    """Message parts: images first, then videos, then the text; no part for what is not there."""
    parts: list[dict[str, Any]] = [{"type": "image", "image": image} for image in observation.images]
    for video in observation.videos:
        parts.append({"type": "video", "video": list(video.frames), "fps": float(video.fps)})
    if observation.text:
        parts.append({"type": "text", "text": observation.text})
    return parts


def message_of(observation: Observation) -> dict[str, Any]:
    """The observation as a message of its role."""
    return {"role": observation.role, "content": parts_of(observation)}
