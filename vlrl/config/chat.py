"""Where an OpenAI-compatible server is, and the limits to keep with it."""

from __future__ import annotations

from typing import Any, Literal
from urllib.parse import urlsplit

from pydantic import ConfigDict, Field, field_validator

from vlrl.config.section import Section


class ChatEndpoint(Section):
    """An OpenAI-compatible server and the limits to keep with it."""

    model_config = ConfigDict(frozen=True)

    base_url: str
    """Address up to and with /v1; requests go to BASE_URL/chat/completions."""
    model: str = Field(min_length=1)
    """Name of the model there."""
    api_key_env: str | None = None
    """Name of the environment variable that holds the key; null sends none. The key is never an option."""
    max_concurrency: int = Field(16, ge=1)
    """Requests in flight at once."""
    timeout_s: float = Field(60.0, gt=0)
    """Most seconds of one request, connecting and the whole answer included."""
    max_retries: int = Field(4, ge=0)
    """Further tries after a cut connection, a time-out, a broken body, or HTTP 408, 409, 425, 429 or 5xx."""
    backoff_s: float = Field(1.0, ge=0)
    """Wait before retry k: backoff_s · 2^(k-1), times 0.5 to 1 by the question's hash; or Retry-After."""
    extra_body: dict[str, Any] = Field(default_factory=dict)
    """Fields added to the request, or put in the place of vlrl's own; null takes a field out."""
    image_format: Literal["jpeg", "png"] = "jpeg"
    """JPEG at quality 95, or PNG: exact and several times larger."""
    max_image_pixels: int = Field(1280 * 28 * 28, ge=28 * 28)
    """An image or frame with more pixels is shrunk to fit, its shape kept."""

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
