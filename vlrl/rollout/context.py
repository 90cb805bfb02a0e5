"""RolloutContext: what episodes are generated with, and how observations become messages."""

from __future__ import annotations

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import Any

import numpy as np

from vlrl.config import Config
from vlrl.environment.host.host import EnvHost
from vlrl.environment.observe import digest_of, parts_of
from vlrl.model.structured.forms import form_of
from vlrl.protocols import Observation, Policy, Processor
from vlrl.rollout.endpoint import Endpoint
from vlrl.rollout.session import MediaMessage
from vlrl.tracking.timeline import Timeline
from vlrl.types import Sampling

NUM_KEPT_MESSAGES = 32
"""Messages that are kept: the episodes of a group are shown the same at first, and most of them at once."""
SamplingFn = Callable[[int | str], Sampling]
"""turn (of several agents: AGENT/TURN) → how its action is generated."""


@dataclass(frozen=True, slots=True)
class RolloutContext:
    """What every episode of a run is played with."""

    policy: Policy
    processor: Processor
    host: EnvHost
    config: Config
    endpoint: Endpoint
    timeline: Timeline = field(default_factory=Timeline)
    messages: OrderedDict[tuple[str, str], MediaMessage] = field(default_factory=OrderedDict)
    """(role, digest) → what was made of an observation lately, NUM_KEPT_MESSAGES of them."""


def endpoint_of(config: Config) -> Endpoint:
    """The endpoint of a run's agents; nothing is started yet.

    Raises:
        ConfigError: if other machines reach it and there is no key for them.
    """
    return Endpoint(config.episodes.endpoint_host)


async def media_message(observation: Observation, sample_id: str, context: RolloutContext) -> MediaMessage:
    """An observation as a message; images are resized in a thread, and once where several see the same."""
    key, known, where = (
        (observation.role, digest_of(observation)),
        context.messages,
        f"{sample_id}, observation",
    )
    summary, form = observation.summary, form_of(observation.structured_outputs, where)
    images = [*observation.images, *(frame for video in observation.videos for frame in video.frames)]
    if not all(isinstance(image, np.ndarray) for image in images):  # a PIL image is more than its pixels
        said = await _message(observation, where, context)
        return replace(said, summary=summary, form=form, seen=key[1])
    if key not in known:
        known[key] = replace(await _message(observation, where, context), seen=key[1])
        if len(known) > NUM_KEPT_MESSAGES:
            known.popitem(last=False)
    known.move_to_end(key)
    return replace(known[key], summary=summary, form=form)


async def _message(observation: Observation, where: str, context: RolloutContext) -> MediaMessage:
    message, parts = context.processor.message, parts_of(observation)
    with context.timeline.part("prompt", "observe"):
        if context.config.env.isolation == "inline" or all(part["type"] == "text" for part in parts):
            return message(observation.role, parts, where)
        return await asyncio.to_thread(message, observation.role, parts, where)


def state_of(said: MediaMessage) -> str:
    """A name for what is shown, where the environment gives none."""
    digest = hashlib.sha256(repr(said.message).encode())
    for medium in said.media:
        digest.update(medium.sha256.encode())
    return digest.hexdigest()[:16]


def numbers(info: Mapping[str, Any]) -> dict[str, float]:
    """Numbers of an environment's info, which can be logged."""
    return {key: float(value) for key, value in info.items() if isinstance(value, Real)}
