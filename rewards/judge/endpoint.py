"""Where a judge is and how it is asked: the `endpoint` option of the judge rewards."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from pydantic import ConfigDict, Field, ValidationError, field_validator

from vlrl.config.options import Section
from vlrl.errors import ConfigError


class JudgeEndpoint(Section):
    """An OpenAI-compatible server and the limits to keep with it."""

    model_config = ConfigDict(frozen=True)

    base_url: str
    """Address up to and with /v1; requests go to BASE_URL/chat/completions."""
    model: str = Field(min_length=1)
    """Name of the model there; it is part of the cache's key, the address is not."""
    api_key_env: str | None = None
    """Name of the environment variable that holds the key; null sends none. The key is never an option."""
    max_concurrency: int = Field(16, ge=1)
    """Requests in flight at once, over all rewards that name this endpoint."""
    timeout_s: float = Field(60.0, gt=0)
    """Most seconds of one request, connecting and the whole answer included."""
    max_retries: int = Field(4, ge=0)
    """Further tries after a cut connection, a time-out, a broken body, or HTTP 408, 409, 425, 429 or 5xx."""
    backoff_s: float = Field(1.0, ge=0)
    """Wait before retry k: backoff_s · 2^(k-1), times 0.5 to 1 by the question's hash; or Retry-After."""
    max_tokens: int = Field(1024, ge=16)
    """Most tokens of a verdict with its reason."""
    extra_body: dict[str, Any] = Field(default_factory=dict)
    """Fields added to the request, or put in the place of vlrl's own; null takes a field out."""
    images: bool = True
    """Show the sample's images and video frames; false for a judge that reads text only."""
    image_format: Literal["jpeg", "png"] = "jpeg"
    """JPEG at quality 95, or PNG: exact and several times larger."""
    max_image_pixels: int = Field(1280 * 28 * 28, ge=28 * 28)
    """An image or frame with more pixels is shrunk to fit, its shape kept."""
    max_frames: int = Field(8, ge=1)
    """Frames shown of a video, evenly spaced, the first and the last among them."""
    cache_dir: Path | None = None
    """Folder of verdicts that are not asked for again; null keeps none."""
    price_in: float = Field(0.0, ge=0)
    """Price of a million prompt tokens, in any currency; for the metric cost."""
    price_out: float = Field(0.0, ge=0)
    """Price of a million completion tokens."""

    @field_validator("base_url")
    @classmethod
    def _plain_address(cls, value: str) -> str:
        parts = urlsplit(value)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("give http://HOST[:PORT]/v1 or https://…")
        if parts.username or parts.password or parts.query or parts.fragment:
            raise ValueError("no user, password, query or fragment belongs here; a key goes by api_key_env")
        return value.rstrip("/").removesuffix("/chat/completions")

    @property
    def url(self) -> str:
        """Where requests are posted."""
        return f"{self.base_url}/chat/completions"


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
