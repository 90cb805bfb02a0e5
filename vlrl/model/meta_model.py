"""A config's model without memory: names and shapes, from config.json alone."""

from __future__ import annotations

from typing import Any

from vlrl.config import Config
from vlrl.errors import ConfigError
from vlrl.storage.model_cache import local_model


def empty_model(config: Config, found: Any = None) -> Any:
    """The model of a config on the meta device; of a hub model config.json is enough.

    Args:
        config: names the model.
        found: its transformers config, where the caller has it; else it is read from model.path.

    Raises:
        ConfigError: if there is no config.json.
    """
    import torch
    from transformers import AutoConfig

    from vlrl.model.omni.thinker import model_class, trained_config

    path, remote = config.model.path, config.processor.trust_remote_code
    try:
        if found is None:
            found = AutoConfig.from_pretrained(local_model(path), trust_remote_code=remote)
    except (OSError, ValueError) as error:
        raise ConfigError(f"model.path={path!r}: no config.json found ({error})") from error
    with torch.device("meta"):
        if (own := trained_config(found)) is not found:
            return model_class(found)._from_config(own)
        return model_class(found).from_config(found, trust_remote_code=remote)
