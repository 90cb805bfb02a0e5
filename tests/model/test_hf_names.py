"""What is saved has the names and shapes of the published files, and loads back to the same parameters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from tiny_families import BUILDERS

from vlrl.model.hf_names import PublishedLayout, save_as_published


def load(folder: Path) -> Any:
    from transformers import AutoModelForImageTextToText

    return AutoModelForImageTextToText.from_pretrained(folder, dtype=torch.float32)


@pytest.mark.parametrize("family", ["qwen3_vl_moe", "llava_onevision", "qwen2_5_vl"])
def test_what_is_saved_is_what_was_loaded(family: str, tmp_path: Path) -> None:
    """Names and shapes in the file too: transformers alone would leave experts as it has them in memory."""
    written = load_file(BUILDERS[family](tmp_path / "published") / "model.safetensors")
    model = load(tmp_path / "published")
    save_as_published(model)
    model.save_pretrained(tmp_path / "again", state_dict=model.state_dict())  # as the trainer does
    again = load_file(tmp_path / "again" / "model.safetensors")
    assert again.keys() == written.keys()
    assert all(torch.equal(again[name], written[name]) for name in written)
    parameters = dict(load(tmp_path / "again").named_parameters())
    for name, parameter in model.named_parameters():
        assert torch.equal(parameters[name], parameter), name


def test_experts_lie_as_published(tmp_path: Path) -> None:
    """[num_experts, in, out], here 128 wide, 96 in each expert, gate and up side by side."""
    weights = load_file(BUILDERS["qwen3_vl_moe"](tmp_path) / "model.safetensors")
    experts = "model.language_model.layers.0.mlp.experts."
    assert weights[experts + "gate_up_proj"].shape == (4, 128, 192)
    assert weights[experts + "down_proj"].shape == (4, 96, 128)


@pytest.mark.parametrize("family", ["qwen3_vl_moe", "llava_onevision", "qwen2_5_vl", "internvl"])
def test_a_parameter_in_memory_becomes_what_the_file_holds(family: str, tmp_path: Path) -> None:
    """What an update sends, against the file that the engine can read; a tower's and an expert's names."""
    written = load_file(BUILDERS[family](tmp_path) / "model.safetensors")
    layout = PublishedLayout(
        transposed_experts=family == "qwen3_vl_moe",
        nested_tower=any("vision_tower.vision_model" in name for name in written),
    )
    by_shape_and_sum = {(tuple(w.shape), float(w.double().sum())) for w in written.values()}
    towers = [name.split("tower.", 1)[1] for name in written if "vision_tower." in name]
    sent = dict(layout.of(n, p.detach()) for n, p in load(tmp_path).named_parameters())
    for tensor in sent.values():
        assert (tuple(tensor.shape), float(tensor.double().sum())) in by_shape_and_sum
    assert sorted(n.split("tower.", 1)[1] for n in sent if "vision_tower." in n) == sorted(towers)
