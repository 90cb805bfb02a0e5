"""Which episodes one environment can serve after the other: those of the same name and options."""

from __future__ import annotations

import json
import pickle

from vlrl.errors import ConfigError
from vlrl.types import EnvTask


def key_of(spec: EnvTask) -> tuple[str, str]:
    """Equal for specs that one environment can serve; ConfigError for options that cannot be sent."""
    try:
        options = json.dumps(dict(spec.options), sort_keys=True, default=lambda v: pickle.dumps(v).hex())
    except Exception as error:  # of a stranger's classes
        raise ConfigError(
            f"env {spec.name!r}: its options cannot be sent to a process ({error}); give plain values, "
            "or set env.isolation=thread"
        ) from error
    return spec.name, options
