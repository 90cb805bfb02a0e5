"""A version with a part of what vLLM keeps as one matrix, told from one whose layers have no other."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import pytest

from vlrl.errors import EngineError
from vlrl.weights.completeness import require_whole_parts

LAYERS = "model.language_model.layers"
SENT = [f"{LAYERS}.0.self_attn.{part}_proj.weight" for part in "qkv"] + [
    f"{LAYERS}.1.self_attn.q_proj.weight"
]


class Mapper:
    """vLLM's WeightsMapper, of one prefix and a matrix of three parts."""

    def __init__(self, stacks: bool = True) -> None:
        self._stacks = stacks

    def get_rename_mapper(self) -> Mapper:
        return Mapper(stacks=False)

    def apply_list(self, values: list[str]) -> list[str]:
        stacked = ".qkv_proj." if self._stacks else r".\1_proj."
        names = [re.sub(r"\.([qkv])_proj\.", stacked, value) for value in values]
        return [name.replace("model.language_model.", "language_model.model.") for name in names]


def engine_model(*names: str, **attributes: Any) -> Any:
    packed = {"qkv_proj": ["q_proj", "k_proj", "v_proj"]}
    parameters = [(f"language_model.model.layers.{name}.weight", None) for name in names]
    return SimpleNamespace(
        packed_modules_mapping=packed, named_parameters=lambda: iter(parameters), **attributes
    )


def test_queries_that_the_engine_keeps_apart_are_whole() -> None:
    """Layers of Gemma 4 that read another layer's keys and values."""
    model = engine_model("0.self_attn.qkv_proj", "1.self_attn.q_proj", hf_to_vllm_mapper=Mapper())
    require_whole_parts(model, SENT)


def test_a_part_without_the_others_is_refused() -> None:
    model = engine_model("0.self_attn.qkv_proj", "1.self_attn.qkv_proj", hf_to_vllm_mapper=Mapper())
    with pytest.raises(EngineError, match=r"layers\.1\.self_attn\.k_proj\.weight.*not sent by the trainer"):
        require_whole_parts(model, SENT)
    model = engine_model("0.self_attn.qkv_proj", "1.self_attn.q_proj", hf_to_vllm_mapper=Mapper())
    with pytest.raises(EngineError, match=r"layers\.0\.self_attn\.v_proj\.weight: not sent"):
        require_whole_parts(model, [*SENT[:2], SENT[3]])
