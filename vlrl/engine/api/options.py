"""What a server of a model is told: limits, secret and the config by which the model answers."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from vlrl.config import Config, parse_config

OPTIONS_VARIABLE = "VLRL_SERVE_OPTIONS"
"""The environment variable by which a server's process gets them; the token has one of its own."""
TOKEN_VARIABLE = "VLRL_SERVE_TOKEN"
"""The environment variable with the token that clients give as their API key; without it any key will do."""
SIZES_HEADER, FRAME_HEADER = "x-vlrl-image-sizes", "x-vlrl-coordinate-frame"
"""Headers of an answer: WIDTHxHEIGHT of each image as the model saw it, and the frame of its coordinates."""


@dataclass(frozen=True, slots=True)
class ModelServerOptions:
    """Limits of a server of a model.

    Attributes:
        name: of the model in the API.
        config: sections model, processor, media, generator and rollout.
        max_images: most images of a request.
        timeout_s: longest a request may take.
        max_body_mib: longest request.
    """

    name: str
    config: Mapping[str, Any]
    max_images: int = 8
    timeout_s: float = 300.0
    max_body_mib: int = 64

    def read_config(self) -> Config:
        """The config; rows are none of a server's business, so its source of them is never opened."""
        return parse_config({**self.config, "data": {"train": "none"}})

    def environment(self) -> dict[str, str]:
        """What `from_environment` reads."""
        return {OPTIONS_VARIABLE: json.dumps(asdict(self))}

    @classmethod
    def from_environment(cls) -> ModelServerOptions:
        """Options of this process."""
        return cls(**json.loads(os.environ[OPTIONS_VARIABLE]))
