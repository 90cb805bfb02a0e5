"""What episodes are played with, and how what an environment shows becomes a message."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import Any

from vlrl.config import Config
from vlrl.endpoint import Endpoint
from vlrl.env_host.host import EnvHost
from vlrl.envs.observe import digest_of, parts_of
from vlrl.protocols import Observation, Policy, Processor
from vlrl.session import Said
from vlrl.timeline import Timeline
from vlrl.types import Sampling

SamplingFn = Callable[[int | str], Sampling]
"""turn (of several agents: AGENT/TURN) → how its action is drawn."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What every episode of a run is played with."""

    policy: Policy
    processor: Processor
    host: EnvHost
    config: Config
    endpoint: Endpoint = field(default_factory=Endpoint)
    timeline: Timeline = field(default_factory=Timeline)


async def said_of(observation: Observation, sample_id: str, setting: Setting) -> Said:
    """An observation as a message; pictures are resized in a thread."""
    where = f"{sample_id}, observation"
    message = setting.processor.message
    parts = parts_of(observation)
    if any(part["type"] != "text" for part in parts) and setting.config.env.isolation != "inline":
        said = await asyncio.to_thread(message, observation.role, parts, where)
    else:
        said = message(observation.role, parts, where)
    return replace(said, summary=observation.summary, seen=digest_of(observation))


def state_of(said: Said) -> str:
    """A name for what is shown, where the environment gives none."""
    digest = hashlib.sha256(repr(said.message).encode())
    for medium in said.media:
        digest.update(medium.sha256.encode())
    return digest.hexdigest()[:16]


def numbers(info: Mapping[str, Any]) -> dict[str, float]:
    """Of an environment's info, what can be logged."""
    return {key: float(value) for key, value in info.items() if isinstance(value, Real)}
