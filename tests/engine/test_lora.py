"""What vLLM is told so that it serves adapters alone, and what is refused before it starts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from builders import make_config
from torch import nn

from vlrl.engine.arguments import engine_arguments
from vlrl.engine.lora import adapter_arguments, called_past, require_places
from vlrl.errors import ConfigError
from vlrl.model.lora import adapter_targets
from vlrl.model.meta_model import empty_model


def handed(model: Path, **lora: Any) -> dict[str, Any]:
    config = make_config(model, lora={"sync": "adapter", **lora})
    assert config.lora is not None
    targets = adapter_targets(empty_model(config), config.lora)
    return adapter_arguments(config.lora, targets, engine_arguments(config, [], {}, on_gpu=False))


@pytest.mark.parametrize(("rank", "room"), [(1, 1), (2, 8), (8, 8), (9, 16), (512, 512)])
def test_room_is_the_least_that_vllm_permits(tiny_model: Path, rank: int, room: int) -> None:
    assert handed(tiny_model, rank=rank)["max_lora_rank"] == room


def test_a_rank_that_vllm_does_not_serve_is_refused(tiny_model: Path) -> None:
    with pytest.raises(ConfigError, match=r"lora\.rank=513.*512 at most; set lora\.sync=merged"):
        handed(tiny_model, rank=513)


def test_layers_with_a_state_take_no_adapters_on_a_cpu(tiny_family: Callable[[str], Path]) -> None:
    with pytest.raises(ConfigError, match=r"with a state take no adapters on a CPU; set lora\.sync=merged"):
        handed(tiny_family("qwen3_5"))


def test_only_targets_get_room(tiny_model: Path) -> None:
    """Names are vLLM's, with the packed layers that they are a part of; a tower only if it is one."""
    language = handed(tiny_model, targets=["*.layers.0.self_attn.q_proj.weight"])
    assert language["enable_tower_connector_lora"] is False
    path = "language_model.model.layers.0.self_attn"
    assert {f"{path}.q_proj", f"{path}.qkv_proj"} <= set(language["lora_target_modules"])
    assert all(name.rpartition(".")[2] in ("q_proj", "qkv_proj") for name in language["lora_target_modules"])
    tower = handed(tiny_model, targets=["vision_tower"])
    assert tower["enable_tower_connector_lora"] is True
    assert "visual.blocks.0.attn.qkv" in tower["lora_target_modules"]
    assert not any("language_model" in name for name in tower["lora_target_modules"])


def test_layers_without_a_place_are_refused_with_the_remedy() -> None:
    require_places([], "m")
    with pytest.raises(ConfigError, match=r"no adapter to 2 layers of m .* 'a\.b'; set lora\.sync=merged"):
        require_places(["a.b", "a.c"], "m")


def test_a_layer_that_is_called_past_its_adapter_is_found() -> None:
    """vLLM's Gemma 4 has a projection in two modules, and wraps it in one."""
    model, inner, layer, other = (nn.Module() for _ in range(4))
    inner.held_twice, inner.held_once = layer, other
    model.inner, model.held_twice = inner, layer
    wrappers = {}
    for name in ("held_twice", "held_once"):
        wrapper = nn.Module()
        wrapper.base_layer = getattr(inner, name)
        setattr(inner, name, wrapper)
        wrappers[f"inner.{name}"] = wrapper
    assert called_past(model, wrappers) == {"inner.held_twice"}
