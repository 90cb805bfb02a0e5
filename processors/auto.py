"""Which processor fits a model."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from vlrl.config import Config
from vlrl.config.paths import looks_like_a_folder
from vlrl.errors import ConfigError
from vlrl.protocols import Processor
from vlrl.registry import available, resolve
from vlrl.storage.model_cache import CONFIG_FILE, local_model

NOT_TRAINED: Mapping[str, str] = {
    "gemma3": "tokens of an image see each other both ways, which vLLM leaves out on a CPU: take Gemma 4",
    "internvl_chat": "it needs the code of its own folder: take the model whose name ends in -HF",
    "kimi_k25": "vLLM prepares its images by other code than transformers', as another kind: take Qwen3.5",
    "kimi_vl": "transformers has no class for it, and the code of its own folder is needed: take Qwen3-VL",
    "llava": "it is the format of LLaVA 1.5 and Pixtral: take LLaVA-NeXT, or Mistral Small 3.1 for Pixtral",
    "minicpmo": "it needs the code of its own folder: take MiniCPM-V 4.6",
    "minicpmv": "it needs the code of its own folder: take MiniCPM-V 4.6",
    "phi4_multimodal": "vLLM has had no class for this format after 0.12: take Qwen3-VL",
    "phi4mm": "it needs the code of its own folder: take Qwen3-VL",
    "qwen3_omni_moe": "no processor of vlrl makes its audio and video yet: take Qwen2.5-Omni",
}
"""Types of models that are asked for → why vlrl does not train them, and what to take."""
HUB_TIMEOUT_S = 10.0
"""Longest wait for the hub's answer before a run says that it cannot be reached."""


def open_processor(config: Config) -> Processor:
    """The processor named in the config, or the one registered under the model's type.

    Raises:
        ConfigError: if the model does not exist or no processor knows its type.
    """
    name, path = config.processor.name, local_model(config.model.path)
    if name == "auto":
        name = model_type(path)
        if name not in available("processors"):
            if reason := NOT_TRAINED.get(name):
                raise ConfigError(f"model.path={config.model.path!r} is of type {name!r}: {reason}")
            known = ", ".join(sorted(available("processors")))
            raise ConfigError(
                f"model.path={config.model.path!r} is of type {name!r}, for which no processor is registered "
                f"(known: {known}); write one and give it as processor.name=./file.py:Class"
            )
    here = config.model_copy(update={"model": config.model.model_copy(update={"path": path})})
    processor: Processor = resolve("processors", name)(here)
    return processor


def model_type(path: str) -> str:
    """The model's type as its config.json says, such as qwen2_5_vl.

    Raises:
        ConfigError: if there is no such model.
    """
    place = f"model.path={path!r}"
    path = local_model(path, only=(CONFIG_FILE,))
    if Path(path).is_dir():
        if not (Path(path) / CONFIG_FILE).is_file():
            raise ConfigError(f"{place} is a folder without a config.json; give one in Hugging Face format")
    elif looks_like_a_folder(path):
        raise ConfigError(f"{place} does not exist")
    else:
        _require_hub_model(path, place)
    from transformers import AutoConfig, PretrainedConfig

    try:
        written = PretrainedConfig.get_config_dict(path)[0].get("model_type", "")
        return written if written in NOT_TRAINED else str(AutoConfig.from_pretrained(path).model_type)
    except (OSError, ValueError, KeyError) as error:
        first_line = str(error).strip().splitlines()[0]
        raise ConfigError(f"{place}: its config.json cannot be read: {first_line}") from error


def _require_hub_model(path: str, place: str) -> None:
    """Raise ConfigError for a hub name that is neither in the cache nor to be had."""
    from huggingface_hub import constants, try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    try:
        cached = isinstance(try_to_load_from_cache(path, "config.json"), str)
    except HFValidationError as error:
        raise ConfigError(f"{place} is neither a folder nor a hub name (OWNER/NAME): {error}") from error
    if not constants.HF_HUB_OFFLINE:
        _ask_hub(path, place, cached)
    elif not cached:
        raise ConfigError(
            f"{place} is neither a folder nor in the Hugging Face cache, and HF_HUB_OFFLINE is set; "
            "give a folder, or unset it to download the model"
        )


def _ask_hub(path: str, place: str, cached: bool) -> None:
    """Ask once, without the half minute of retries that a download makes where there is no network."""
    from huggingface_hub import HfApi, constants
    from huggingface_hub.errors import HfHubHTTPError, RepositoryNotFoundError

    try:
        HfApi().model_info(path, timeout=HUB_TIMEOUT_S)
    except RepositoryNotFoundError as error:
        raise ConfigError(
            f"{place} is neither a folder nor a model on the hub; check the name; for a private model log "
            "in with `hf auth login`"
        ) from error
    except HfHubHTTPError:
        return  # reached; the download itself will say what is wrong
    except Exception as error:  # whichever class the hub's HTTP library of the day has for "no connection"
        remedy = "set HF_HUB_OFFLINE=1 to use the copy in the cache" if cached else "give a folder instead"
        raise ConfigError(
            f"{place} is not a folder, and {constants.ENDPOINT} cannot be reached ({error}); {remedy}"
        ) from error
