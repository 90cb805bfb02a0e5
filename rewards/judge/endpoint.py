"""Where a judge is and how it is asked: the `endpoint` option of the judge rewards."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from vlrl.chat_client.client import ChatFailure
from vlrl.config.chat import ChatEndpoint
from vlrl.errors import ConfigError


class JudgeFailure(ChatFailure):
    """No verdict, for a reason that is not the completion's: a failure of the reward (law 7), not a score."""


class JudgeEndpoint(ChatEndpoint):
    """An OpenAI-compatible server as a judge; its requests count over all rewards that name this endpoint."""

    max_tokens: int = Field(1024, ge=16)
    """Most tokens of a verdict with its reason."""
    images: bool = True
    """Show the sample's images and video frames; false for a judge that reads text only."""
    max_frames: int = Field(8, ge=1)
    """Frames shown of a video, evenly spaced, the first and the last among them."""
    cache_dir: Path | None = None
    """Folder of verdicts that are not asked for again; null keeps none. The model's name is part of the key,
    the address is not."""
    price_in: float = Field(0.0, ge=0)
    """Price of a million prompt tokens, in any currency; for the metric cost."""
    price_out: float = Field(0.0, ge=0)
    """Price of a million completion tokens."""


def parse_endpoint(options: Mapping[str, Any]) -> JudgeEndpoint:
    """The endpoint of a reward's options.

    Raises:
        ConfigError: naming every wrong key.
    """
    if not isinstance(options, Mapping):
        raise ConfigError(f"endpoint={options!r:.60} must be a mapping with base_url and model")
    return _parse(json.dumps(dict(options), sort_keys=True, default=str))


@functools.lru_cache(maxsize=64)
def _parse(options: str) -> JudgeEndpoint:
    try:
        return JudgeEndpoint.model_validate_json(options)
    except ValidationError as error:
        known = ", ".join(JudgeEndpoint.model_fields)
        wrong = "; ".join(
            f"endpoint.{'.'.join(map(str, item['loc']))}: {item['msg']}"
            + (f" (known: {known})" if item["type"] == "extra_forbidden" else "")
            for item in error.errors()
        )
        raise ConfigError(f"the judge's options: {wrong}") from None
