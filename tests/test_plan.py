"""`vlrl plan` without loading anything: counts are the model's own, and predictions move as they must."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from builders import make_config
from tiny_families import BUILDERS

from vlrl.config import Config
from vlrl.errors import ConfigError
from vlrl.model_parts import part_of
from vlrl.plan.memory import layer_values
from vlrl.plan.predict import GIB, Machine, fitting_changes, predict
from vlrl.plan.shapes import ModelShape, Stack, read_shape
from vlrl.plan.workload import Prompts, workload

PROMPTS = Prompts(text_tokens=40, num_pictures=1, picture_pixels=56 * 84, completion_tokens=12)
GPU = Machine("cuda", 80 * GIB, 400e12)


def stack(num_layers: int, hidden: int, inner: int, layer: int) -> Stack:
    return Stack(num_layers, hidden, hidden, hidden // 4, inner, 3, layer)


# Qwen2.5-VL-7B's widths.
SEVEN = ModelShape(
    params={"vision_tower": 630_000_000, "projector": 45_000_000, "embeddings": 545_000_000,
            "language_layers": 6_527_000_000, "head": 545_000_000},
    trained={"vision_tower": 630_000_000, "projector": 45_000_000, "embeddings": 545_000_000,
             "language_layers": 6_527_000_000, "head": 545_000_000},
    adapters=0, language=stack(28, 3584, 18944, 233_000_000), vision=stack(32, 1280, 3420, 20_000_000),
    vocab=152064, patch=14, patches_per_token=4, weight_bytes=2,
)  # fmt: skip


def with_trainer(config: Config, **values: Any) -> Config:
    return config.model_copy(update={"trainer": config.trainer.model_copy(update=values)})


@pytest.mark.parametrize("family", sorted(BUILDERS))
def test_shapes_are_the_models(family: str, tmp_path: Path) -> None:
    """Of every family, from config.json alone."""
    from transformers import AutoModelForImageTextToText

    folder = BUILDERS[family](tmp_path / family)
    model: Any = AutoModelForImageTextToText.from_pretrained(folder)
    (folder / "model.safetensors").unlink()
    shape = read_shape(make_config(folder))
    assert shape.num_params == shape.num_trained == sum(p.numel() for p in model.parameters())
    for part, count in shape.params.items():
        assert count == sum(p.numel() for n, p in model.named_parameters() if part_of(n) == part)
    assert shape.language.num_layers == 2
    assert shape.language.hidden == 128
    assert shape.vocab == model.config.get_text_config().vocab_size
    assert shape.vision.hidden in (64, 128)


def test_freezing_and_adapters_leave_less_to_train(tiny_model: Path) -> None:
    whole = read_shape(make_config(tiny_model))
    config = make_config(tiny_model)
    config.model.freeze = ["vision_tower"]
    frozen = read_shape(config)
    assert frozen.num_trained == whole.num_trained - whole.params["vision_tower"]
    adapted = read_shape(
        make_config(tiny_model, lora={"rank": 2, "targets": ["*.0.self_attn.q_proj.weight"]})
    )
    assert adapted.num_trained == adapted.adapters == 2 * (128 + 128)
    assert adapted.num_params == whole.num_params
    config.model.freeze = ["nothing"]
    with pytest.raises(ConfigError, match="names no parameter"):
        read_shape(config)


def test_a_model_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no config\.json found"):
        read_shape(make_config(tmp_path))


def test_work_is_what_the_packer_makes() -> None:
    config = make_config(rollout={"prompts_per_step": 6, "group_size": 4})
    config = with_trainer(config, max_tokens_per_micro_batch=1024)
    work = workload(SEVEN, Prompts(94, 1, 56 * 56, 25), config)  # 16 patches, 4 tokens: prefix 98, row 198
    assert (work.row_tokens, work.step_tokens, work.step_patches) == (198, 6 * 198, 6 * 16)
    assert (work.micro_tokens, work.micro_patches, work.num_micro_batches) == (5 * 198, 5 * 16, 2)
    assert work.step_targets == 6 * 4 * 25
    long = workload(SEVEN, Prompts(94, 1, 56 * 56, 400), config)  # two completions a tree, the prompt again
    assert (long.row_tokens, long.step_tokens, long.micro_tokens) == (898, 12 * 898, 898)


def test_each_saving_saves_its_own_part() -> None:
    config = make_config()
    config.model.dtype = "bfloat16"
    config = with_trainer(config, num_ranks=4, max_tokens_per_micro_batch=8192)
    config.rollout.prompts_per_step, config.rollout.group_size = 64, 8
    prompts = Prompts(128, 1, 1_000_000, 256)
    plain = predict(config, prompts, GPU, SEVEN)
    recomputed = predict(with_trainer(config, gradient_checkpointing=True), prompts, GPU, SEVEN)
    assert recomputed.memory.activations < plain.memory.activations / 5
    assert recomputed.train_flops > 1.2 * plain.train_flops
    assert recomputed.memory.optimizer == plain.memory.optimizer
    offloaded = predict(with_trainer(config, offload_optimizer=True), prompts, GPU, SEVEN)
    assert offloaded.memory.optimizer == 0
    assert offloaded.memory.host >= plain.memory.optimizer
    more = predict(with_trainer(config, num_ranks=8), prompts, GPU, SEVEN)
    assert more.memory.optimizer == pytest.approx(plain.memory.optimizer / 2, rel=1e-6)
    assert more.train_seconds == pytest.approx(plain.train_seconds / 2, rel=0.05)
    chunked = predict(with_trainer(config, logits_chunk_mib=1024), prompts, GPU, SEVEN)
    assert chunked.memory.logits > plain.memory.logits
    kl = config.model_copy(update={"algorithm": config.algorithm.model_copy(update={"kl_coef": 0.1})})
    assert predict(kl, prompts, GPU, SEVEN).memory.weights > plain.memory.weights


def test_zero3s_static_part_is_the_papers() -> None:
    """ZeRO (arXiv 1910.02054, Fig. 1) has 2 + 2 + 12 bytes a parameter; with float32 gradients it is 18."""
    config = make_config()
    config.model.dtype = "bfloat16"
    memory = predict(config, PROMPTS, GPU, SEVEN).memory
    bucket = 500_000_000 * 4
    static = memory.weights + memory.gradients + memory.optimizer - bucket
    assert static == pytest.approx(18 * SEVEN.num_params, rel=1e-6)


def test_changes_that_are_suggested_fit_and_a_hopeless_case_has_none(tiny_model: Path) -> None:
    config = make_config(tiny_model)
    config = with_trainer(config, max_tokens_per_micro_batch=8192)
    config.rollout.prompts_per_step = 256
    needed = predict(config, PROMPTS, Machine("cpu", 0, 1e11)).needed_bytes
    tight = Machine("cpu", needed - 2**20, 1e11)
    changes = fitting_changes(config, PROMPTS, tight)
    assert "trainer.gradient_checkpointing=true" in [key for key, _ in changes]
    assert all(plan.needed_bytes <= tight.memory_bytes for _, plan in changes)
    assert fitting_changes(config, PROMPTS, Machine("cpu", GIB, 1e11)) == []


@pytest.mark.parametrize("family", ["qwen2_5_vl", "qwen3_vl", "internvl"])
def test_saved_values_of_a_layer_are_what_autograd_keeps(family: str, tmp_path: Path) -> None:
    """The formula against a real decoder, every saved tensor counted once by its storage."""
    from transformers import AutoModelForImageTextToText

    folder = BUILDERS[family](tmp_path / family)
    model: Any = AutoModelForImageTextToText.from_pretrained(folder, attn_implementation="sdpa")
    shape, num_tokens = read_shape(make_config(folder)), 256
    sizes: dict[int, int] = {}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        sizes[storage.data_ptr()] = storage.nbytes() // tensor.element_size()
        return tensor

    kept: list[torch.Tensor] = []  # alive, so that no storage is counted for another
    embeds = model.get_input_embeddings()(torch.zeros(1, num_tokens, dtype=torch.long))
    mask = torch.zeros(1, 1, num_tokens, num_tokens).masked_fill_(torch.ones(num_tokens, num_tokens).triu(1).bool(), -1e9)  # fmt: skip  # noqa: E501
    weights = {p.untyped_storage().data_ptr() for p in model.parameters()}
    with torch.autograd.graph.saved_tensors_hooks(lambda t: (kept.append(t), keep(t))[1], lambda t: t):
        model.get_decoder()(inputs_embeds=embeds, attention_mask=mask, use_cache=False)
    saved = sum(size for place, size in sizes.items() if place not in weights)
    saved -= num_tokens**2  # the mask
    expected = shape.language.num_layers * layer_values(shape.language) * num_tokens
    assert saved == pytest.approx(expected, rel=0.15)
