"""Which processor fits a model."""

from __future__ import annotations

import os
from pathlib import Path

from vlrl.config import Config
from vlrl.errors import ConfigError
from vlrl.protocols import Processor
from vlrl.registry import available, resolve


def open_processor(config: Config) -> Processor:
    """The processor named in the config, or the one registered under the model's type.

    Raises:
        ConfigError: if the model does not exist or no processor knows its type.
    """
    name = config.processor.name
    if name == "auto":
        name = _model_type(config.model.path)
        if name not in available("processors"):
            known = ", ".join(sorted(available("processors")))
            raise ConfigError(
                f"model.path={config.model.path!r} is of type {name!r}, for which no processor is registered "
                f"(known: {known}); write one and give it as processor.name=./file.py:Class"
            )
    processor: Processor = resolve("processors", name)(config)
    return processor


def _model_type(path: str) -> str:
    if not Path(path).is_dir() and _looks_like_a_folder(path):
        raise ConfigError(f"model.path={path!r} does not exist (looked in {Path.cwd()})")
    from transformers import AutoConfig

    try:
        return str(AutoConfig.from_pretrained(path).model_type)
    except (OSError, ValueError) as error:
        offline = " (HF_HUB_OFFLINE=1 is set)" if os.environ.get("HF_HUB_OFFLINE") == "1" else ""
        first_line = str(error).strip().splitlines()[0]
        raise ConfigError(
            f"model.path={path!r} is neither a folder nor a model that can be fetched{offline}: {first_line}"
        ) from error


def _looks_like_a_folder(path: str) -> bool:
    """A hub name is OWNER/NAME; anything with another shape is meant as a folder."""
    return path.startswith((".", "/", "~")) or path.count("/") != 1 or Path(path).parts[0] in ("runs", "models")
