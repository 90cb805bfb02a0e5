"""Which part a parameter belongs to, in every family, and what freezing leaves to train."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from builders import make_config
from tiny_families import BUILDERS

from vlrl.errors import ConfigError
from vlrl.model.parts import freeze, part_of, recomputes, vision_is_frozen
from vlrl.trainer.model import deepspeed_config, load_model
from vlrl.trainer.offload import of_reference


@pytest.fixture(scope="module", params=["qwen3_vl", "internvl", "smolvlm", "llava_onevision", "gemma4"])
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    from transformers import AutoModelForImageTextToText

    folder: Path = BUILDERS[request.param](tmp_path_factory.mktemp(request.param))
    return AutoModelForImageTextToText.from_pretrained(folder)


def trained(model: Any) -> set[str]:
    return {part_of(name) for name, p in model.named_parameters() if p.requires_grad}


def test_each_part_can_be_frozen_alone(model: Any) -> None:
    """But for an audio tower, which never is trained."""
    parts = trained(model) - {"audio_tower"}
    assert parts >= {"vision_tower", "projector", "embeddings", "language_layers"}
    for part in sorted(parts):
        model.requires_grad_(True)
        freeze(model, [part])
        assert trained(model) == parts - {part}
        assert not vision_is_frozen(model)
    model.requires_grad_(True)
    freeze(model, ["vision_tower", "projector"])
    assert vision_is_frozen(model)


def test_a_part_is_where_the_model_has_it(model: Any) -> None:
    """The projector is what makes the language model's width of the tower's; layers are the decoder's."""
    core = model.model
    language = {id(p) for p in (core.text_model if hasattr(core, "text_model") else core.language_model).parameters()}  # fmt: skip  # noqa: E501
    for name, parameter in model.named_parameters():
        inside = part_of(name) in ("embeddings", "language_layers")
        assert (id(parameter) in language) == inside, name


def test_patterns_match_whole_names(model: Any) -> None:
    model.requires_grad_(True)
    freeze(model, ["*.layers.0.*attn*.q_proj.weight"])
    frozen = [n for n, p in model.named_parameters() if not p.requires_grad and part_of(n) != "audio_tower"]
    assert frozen
    assert all(".layers.0." in name and name.endswith("q_proj.weight") for name in frozen)


def test_a_pattern_that_names_nothing_says_what_there_is(model: Any) -> None:
    with pytest.raises(ConfigError, match=r"'vision' names no parameter; parts are .*vision_tower"):
        freeze(model, ["vision"])


@pytest.mark.parametrize("choice", [False, True, "vision", "language"])
def test_activations_are_recomputed_on_the_chosen_side(choice: bool | str, tmp_path: Path) -> None:
    """A block that is recomputed runs twice: forward, and again for the backward pass."""
    folder = BUILDERS["qwen2_5_vl"](tmp_path / "model")
    model = load_model(make_config(folder, trainer={"gradient_checkpointing": choice}))
    runs = {"vision": 0, "language": 0}

    def counted(side: str, forward: Any) -> Any:
        def run(*args: Any, **options: Any) -> Any:
            runs[side] += 1
            return forward(*args, **options)

        return run

    for side, block in (
        ("vision", model.model.visual.blocks[0]),
        ("language", model.get_decoder().layers[0]),
    ):
        block.forward = counted(side, block.forward)
    patches = torch.randn(16, 3 * 2 * 14**2)
    features = model.model.get_image_features(patches, torch.tensor([[1, 4, 4]]), return_dict=True)
    embeds = features.pooler_output[0][None]
    model.get_decoder()(inputs_embeds=embeds, use_cache=False).last_hidden_state.sum().backward()
    assert runs == {side: 1 + recomputes(choice, side) for side in ("vision", "language")}  # type: ignore[arg-type]


def test_deepspeed_reduces_bfloat16_in_float32_and_offloads_as_told() -> None:
    config = make_config(trainer={"offload_optimizer": True, "offload_parameters": True})
    config.model.dtype = "bfloat16"
    options = deepspeed_config(config, "cpu")
    assert options["data_types"] == {"grad_accum_dtype": "fp32"}
    assert options["communication_data_type"] == "fp32"
    assert options["zero_optimization"]["offload_optimizer"] == {"device": "cpu"}
    assert options["zero_optimization"]["offload_param"] == {"device": "cpu"}


@pytest.mark.parametrize("lora", [None, {"rank": 4}])
def test_weights_on_a_disk_are_read_through_buffers_that_hold_a_block(
    tiny_model: Path, tmp_path: Path, lora: dict[str, Any] | None
) -> None:
    """A slice larger than a buffer, or a block of more weights than buffers, would end the run."""
    on_disk = {"num_ranks": 2, "offload_parameters": True, "offload_dir": tmp_path}
    config = make_config(tiny_model, trainer=on_disk, lora=lora)
    model = load_model(config)
    options = deepspeed_config(config, "cpu")["zero_optimization"]
    of_parameters = options["offload_param"]
    assert of_parameters["device"] == "nvme" and of_parameters["nvme_path"] == str(tmp_path)
    assert of_parameters["max_in_cpu"] == 0
    block = list(model.get_decoder().layers[0].parameters())
    assert len(block) == (26 if lora else 12)
    assert of_parameters["buffer_count"] >= len(block) + 2
    assert of_parameters["buffer_size"] >= max(p.numel() for p in model.parameters()) / 2
    assert options["stage3_prefetch_bucket_size"] == 0
    reference = of_reference(config)
    assert reference.trainer.offload_dir is not None
    assert reference.trainer.offload_dir.parent == tmp_path  # DeepSpeed empties the folder it begins in
