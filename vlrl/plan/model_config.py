"""A model's config.json without waiting: from its folder, the hub's cache, or `models/`; else from the hub.

`models/ORGANISATION/NAME.json` holds what memory and time follow from, of the models that are trained most.
Their parameters counted are those that the hub publishes, to the last one (tests/plan/test_model_config.py).
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from vlrl.errors import ConfigError
from vlrl.storage.model_cache import CONFIG_FILE, local_model

MODELS = Path(__file__).parent / "models"
HUB_TIMEOUT_S = 3.0
NOT_THERE = (OSError, ValueError)  # what transformers raises for a name without a config.json


def find_model_config(path: str, *, remote_code: bool = False, fetch: bool = True) -> Any:
    """The transformers config of a folder or hub name; the hub is asked last, and only where it answers.

    Args:
        path: as in model.path.
        remote_code: whether Python that comes with the model may run.
        fetch: ask the hub for what is nowhere else.

    Raises:
        ConfigError: if it is nowhere; says where was looked.
    """
    from transformers import AutoConfig

    if "://" in path:
        return _read(local_model(path, only=(CONFIG_FILE,)), AutoConfig, trust_remote_code=remote_code)
    if Path(path).is_dir():
        return _read(path, AutoConfig, trust_remote_code=remote_code)
    with suppress(*NOT_THERE):
        return AutoConfig.from_pretrained(path, local_files_only=True, trust_remote_code=remote_code)
    if tree := shipped(path):
        return AutoConfig.for_model(**tree)
    if not fetch:
        trouble = "the hub is not asked here"
    elif not (trouble := hub_trouble(os.environ)):
        return _read(path, AutoConfig, trust_remote_code=remote_code)
    raise ConfigError(
        f"model.path={path!r}: no config.json found: it is not a folder, not in the hub's cache, none of the "
        f"models whose shapes come with vlrl ({', '.join(known_models())}), and {trouble}; give a folder "
        "that has one"
    )


def shipped(name: str) -> dict[str, Any] | None:
    """The shapes of a hub model that vlrl knows; None of any other."""
    if name.endswith("-Thinking"):  # its -Instruct sibling with other weights
        name = f"{name.removesuffix('-Thinking')}-Instruct"
    if name not in known_models():
        return None
    return dict(json.loads((MODELS / f"{name}.json").read_text(encoding="utf-8")))


def known_models() -> list[str]:
    """Hub names of which the shapes are shipped."""
    return sorted(str(file.relative_to(MODELS).with_suffix("")) for file in MODELS.glob("*/*.json"))


def hub_trouble(environment: Mapping[str, str], timeout_s: float = HUB_TIMEOUT_S) -> str:
    """Why the hub cannot be asked, in words; empty if it answers."""
    if environment.get("HF_HUB_OFFLINE", "").upper() in ("1", "ON", "YES", "TRUE"):
        return "HF_HUB_OFFLINE is set"
    import httpx2  # who does not ask the hub need not have it

    endpoint = environment.get("HF_ENDPOINT", "https://huggingface.co")
    try:
        httpx2.head(endpoint, timeout=timeout_s)  # any status is an answer
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        return f"{endpoint} cannot be reached ({error})"
    return ""


def _read(path: str, reader: Any, **options: Any) -> Any:
    try:
        return reader.from_pretrained(path, **options)
    except NOT_THERE as error:
        raise ConfigError(f"model.path={path!r}: no config.json found ({error})") from error
