"""Whether a server was started as an engine of this run would be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vlrl.errors import ConfigError

COMPARED = {
    "dtype": "model_config",
    "logits_processors": "model_config",
    "logprobs_mode": "model_config",
    "mm_processor_kwargs": "model_config.multimodal_config",
    "tensor_parallel_size": "parallel_config",
    "worker_extension_cls": "parallel_config",
    "additional_config": "",
}
"""Argument of an engine → the part of vLLM's config that has its value."""


def require_same_engine(url: str, vllm_config: Mapping[str, Any], arguments: Mapping[str, Any]) -> None:
    """Compare a server with what the run would start its own engines with.

    Args:
        url: of the server.
        vllm_config: the server's, as JSON.
        arguments: of EngineArgs, see `engine_arguments`.

    Raises:
        ConfigError: naming what differs, such as another dtype (law 5) or other media tokens (law 3).
    """
    different = [
        f"{name} is {found!r}, the run's {arguments[name]!r}"
        for name, part in COMPARED.items()
        if not _equal(found := _value(vllm_config, part, name), arguments[name])
    ]
    longest = _value(vllm_config, "model_config", "max_model_len")
    if longest < arguments["max_model_len"]:
        different.append(f"max_model_len is {longest}, the run's {arguments['max_model_len']}")
    if different:
        raise ConfigError(
            f"{url} (generator.servers) is another engine than the run's: {'; '.join(different)}; start it "
            "with the run's own config: vlrl engine CONFIG"
        )


def _value(vllm_config: Mapping[str, Any], part: str, name: str) -> Any:
    found: Any = vllm_config
    for key in filter(None, [*part.split("."), name]):
        found = found.get(key) if isinstance(found, Mapping) else None
    return found


def _equal(found: Any, wanted: Any) -> bool:
    if isinstance(found, str) and found.startswith("torch."):
        return found == f"torch.{wanted}"
    return bool((found or None) == (wanted or None))
