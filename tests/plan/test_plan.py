"""`vlrl plan` without loading anything: counts are the model's own, and predictions move as they must."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from builders import make_config, make_sample, make_trajectory
from tiny_families import BUILDERS

from vlrl.algorithm.credit import group_with_advantages
from vlrl.config import Config
from vlrl.errors import ConfigError
from vlrl.model.attention import install
from vlrl.model.parts import part_of
from vlrl.model.tree_attention import BlockAttention, block_sizes
from vlrl.packing.options import PackOptions
from vlrl.packing.pack import pack
from vlrl.plan.changes import fitting_changes
from vlrl.plan.memory import key_values, layer_values
from vlrl.plan.predict import GIB, PlannedMachine, predict
from vlrl.plan.shapes import ModelShape, Stack, read_shape
from vlrl.plan.workload import Prompts, workload
from vlrl.types import Media

PROMPTS = Prompts(text_tokens=40, num_images=1, image_pixels=56 * 84, completion_tokens=12)
GPU = PlannedMachine("cuda", 80 * GIB, 400e12)


def stack(num_layers: int, hidden: int, inner: int, layer: int) -> Stack:
    return Stack(num_layers, hidden, hidden, hidden // 4, inner, 3, layer)


# Qwen2.5-VL-7B's widths.
SEVEN = ModelShape(
    params={"vision_tower": 630_000_000, "projector": 45_000_000, "embeddings": 545_000_000,
            "language_layers": 6_527_000_000, "head": 545_000_000},
    trained={"vision_tower": 630_000_000, "projector": 45_000_000, "embeddings": 545_000_000,
             "language_layers": 6_527_000_000, "head": 545_000_000},
    adapters=0, adapted_outputs={},
    language=stack(28, 3584, 18944, 233_000_000), vision=stack(32, 1280, 3420, 20_000_000),
    vocab=152064, patch=14, patches_per_token=4, weight_bytes=2,
)  # fmt: skip


def with_trainer(config: Config, **values: Any) -> Config:
    return config.model_copy(update={"trainer": config.trainer.model_copy(update=values)})


@pytest.mark.parametrize("family", sorted(BUILDERS))
def test_shapes_are_the_models(family: str, tmp_path: Path) -> None:
    """Shapes of every family come from config.json alone."""
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
    assert adapted.adapted_outputs == {"language_layers": 128}
    assert adapted.num_params == whole.num_params
    config.model.freeze = ["nothing"]
    with pytest.raises(ConfigError, match="names no parameter"):
        read_shape(config)


def test_a_model_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no config\.json found"):
        read_shape(make_config(tmp_path))


def packed(prompts: Prompts, config: Config, num_images: int) -> Any:
    """The packer's batch of groups of this size, whose images take 56 × 56 pixels and 4 tokens."""
    rng = np.random.default_rng(0)
    groups = []
    for number in range(config.rollout.prompts_per_step):
        flat = np.full((1, 56, 56, 3), number, np.uint8)
        media = tuple(
            Media("image", f"{number}.{i}", flat, (56, 56), (1, 4, 4), 4) for i in range(num_images)
        )
        ids = [1000 + number, *rng.integers(10, 99, prompts.text_tokens + 4 * num_images - 1).tolist()]
        sample = make_sample(ids, id=str(number), media=media)
        generated = [  # each begins with a token of its own, so that nothing is shared after the prompt
            [100 + i, *rng.integers(10, 99, prompts.completion_tokens - 1).tolist()]
            for i in range(config.rollout.group_size)
        ]
        groups.append(
            group_with_advantages(
                [make_trajectory(sample, tokens) for tokens in generated], [1.0] * len(generated)
            )
        )
    return pack(
        groups,
        lambda media: {"marks": np.array([int(m.frames[0, 0, 0, 0]) for m in media])},
        PackOptions(
            num_ranks=config.trainer.num_ranks,
            sequence_parallel=config.trainer.sequence_parallel,
            max_tokens=config.trainer.max_tokens_per_micro_batch,
            max_pixels=config.trainer.max_pixels_per_micro_batch,
            aggregation="token",
            max_completion_tokens=prompts.completion_tokens,
            keep_zero_advantage=True,
        ),
    )


@pytest.mark.parametrize(
    ("text", "images", "generated", "group_size", "budget", "num_ranks", "max_pixels"),
    [
        (94, 1, 25, 4, 1024, 1, None),  # several groups a micro-batch
        (94, 1, 25, 4, 1024, 2, None),
        (94, 1, 25, 4, 1024, 1, 2 * 56 * 56),
        (94, 2, 400, 4, 1024, 1, None),  # two completions a tree, the prompt again
        (94, 1, 400, 5, 1024, 1, None),  # and one that is left over
        (20, 1, 90, 4, 256, 1, None),
        (8, 0, 300, 4, 512, 1, None),  # sharing is not worth it
        (30, 1, 1, 8, 128, 1, None),
    ],
)  # fmt: skip
def test_work_is_what_the_packer_makes(
    text: int,
    images: int,
    generated: int,
    group_size: int,
    budget: int,
    num_ranks: int,
    max_pixels: int | None,
) -> None:
    config = make_config(rollout={"prompts_per_step": 6, "group_size": group_size})
    config = with_trainer(
        config, max_tokens_per_micro_batch=budget, num_ranks=num_ranks, max_pixels_per_micro_batch=max_pixels
    )
    prompts = Prompts(text, images, 56 * 56, generated)
    work = workload(SEVEN, prompts, config)
    ranks = packed(prompts, config, images)
    sizes = [len(m.input_ids) for rank in ranks for m in rank]
    largest = max((m for rank in ranks for m in rank), key=lambda m: len(m.input_ids))
    assert work.num_micro_batches == len(ranks[0])
    assert work.step_tokens == sum(sizes)
    assert work.step_targets == 6 * group_size * generated
    assert work.micro_tokens == max(sizes)
    assert work.micro_targets == len(largest.target_ids)
    assert work.micro_patches == 16 * len(largest.media_keys)
    seen_until = largest.seen_until.astype(np.int64)
    assert (work.micro_pairs, work.micro_keys) == pytest.approx(block_sizes(seen_until), rel=0.02)


@pytest.mark.parametrize("images", [0, 1, 3])
def test_ranks_that_share_sequences_are_counted_by_their_slices(images: int) -> None:
    """Four ranks, two for a sequence: half the micro-batches' tokens and images on each of them."""
    config = make_config(rollout={"prompts_per_step": 6, "group_size": 4})
    config = with_trainer(config, max_tokens_per_micro_batch=1024, num_ranks=4, sequence_parallel=2)
    prompts = Prompts(94, images, 56 * 56, 60)
    work = workload(SEVEN, prompts, config)
    ranks = packed(prompts, config, images)
    assert work.num_micro_batches == len(ranks[0])
    slices = [m for rank in ranks for m in rank]
    assert work.step_tokens == sum(len(m.input_ids) for m in slices)
    assert work.micro_tokens == max(len(m.seen_until) for m in slices)
    assert work.slice_tokens == pytest.approx(max(len(m.input_ids) for m in slices), abs=4)
    assert work.slice_patches == pytest.approx(16 * max(len(m.media_keys) for m in slices), abs=16)


def test_ranks_that_share_sequences_hold_less_each() -> None:
    config = make_config(rollout={"prompts_per_step": 64, "group_size": 8})
    config.model.dtype = "bfloat16"
    prompts = Prompts(128, 4, 500_000, 256)
    plain, shared = (
        predict(
            with_trainer(config, num_ranks=8, max_tokens_per_micro_batch=16384, sequence_parallel=size),
            prompts, GPU, replace(SEVEN, language=replace(SEVEN.language, num_heads=28, num_key_heads=4)),
        )
        for size in (1, 4)
    )  # fmt: skip
    assert shared.memory.activations == pytest.approx(plain.memory.activations / 4, rel=0.02)
    assert shared.memory.vision < plain.memory.vision / 3
    assert shared.memory.weights == plain.memory.weights
    assert shared.train_flops == plain.train_flops


def test_sharing_sequences_is_suggested_where_heads_allow(tiny_model: Path) -> None:
    config = with_trainer(make_config(tiny_model), num_ranks=2, max_tokens_per_micro_batch=512)
    config.rollout.prompts_per_step = 64
    needed = predict(config, PROMPTS, replace(GPU, memory_bytes=0)).needed_bytes
    tight = replace(GPU, memory_bytes=int((needed - 2**19) / (1 - config.generator.gpu_memory_utilization)))
    assert "trainer.sequence_parallel=2" in [
        key for key, _ in fitting_changes(config, PROMPTS, tight).fitting
    ]


def test_what_is_frozen_costs_no_backward_pass() -> None:
    config = make_config(rollout={"prompts_per_step": 8, "group_size": 4})
    prompts = Prompts(16, 4, 1_000_000, 8)

    def planned(*trained: str) -> Any:
        kept = {part: count for part, count in SEVEN.trained.items() if part in trained}
        return predict(config, prompts, GPU, replace(SEVEN, trained=kept))

    everything = planned(*SEVEN.trained)
    projector = planned("projector", "embeddings", "language_layers", "head")
    neither = planned("embeddings", "language_layers", "head")
    assert projector.memory.vision == neither.memory.vision < everything.memory.vision / 8
    assert projector.train_flops == neither.train_flops < everything.train_flops
    # Tower alone: gradients go through the language layers, but none is of their weights.
    tower = planned("vision_tower", "projector")
    assert tower.train_flops < everything.train_flops


def test_what_is_asked_of_other_weights_is_counted() -> None:
    """A reference, and the proximal policy of all minibatches but the first."""
    flops = {}
    for name, algorithm in {
        "plain": {"num_minibatches": 4},
        "kl": {"num_minibatches": 4, "kl_coef": 0.1},
        "proximal": {"num_minibatches": 4, "correction": {"kind": "decoupled"}},
        "none to ask": {"num_minibatches": 1, "correction": {"kind": "decoupled"}},
        "interpolated": {
            "num_minibatches": 4,
            "correction": {"kind": "decoupled", "proximal": "interpolated"},
        },
    }.items():
        config = make_config(rollout={"prompts_per_step": 8}, algorithm=algorithm)
        flops[name] = predict(config, PROMPTS, GPU, SEVEN).train_flops
    assert flops["none to ask"] == flops["interpolated"] == flops["plain"]
    once = flops["kl"] - flops["plain"]
    assert flops["proximal"] - flops["plain"] == pytest.approx(0.75 * once)
    assert 0.25 * flops["plain"] < once < 0.4 * flops["plain"]


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
    assert offloaded.memory.host == plain.memory.optimizer + 3 * plain.memory.update  # not fused there
    small = config.model_copy(update={"optim": config.optim.model_copy(update={"state": "8bit"})})
    moments = predict(small, prompts, GPU, SEVEN).memory.optimizer - SEVEN.num_params  # 4 bytes on 4 ranks
    assert moments == pytest.approx((plain.memory.optimizer - SEVEN.num_params) / 4, rel=0.02)
    more = predict(with_trainer(config, num_ranks=8), prompts, GPU, SEVEN)
    assert more.memory.optimizer == pytest.approx(plain.memory.optimizer / 2, rel=1e-6)
    assert more.train_seconds == pytest.approx(plain.train_seconds / 2, rel=0.05)
    chunked = predict(with_trainer(config, logits_chunk_mib=1024), prompts, GPU, SEVEN)
    assert chunked.memory.logits > plain.memory.logits
    unlike = predict(with_trainer(config, logits_chunk_mib=64), prompts, GPU, SEVEN).memory.logits
    assert plain.memory.logits - unlike == (256 - 64) * 2**20 * 5 // 2  # two in float32, one in bfloat16
    kl = config.model_copy(update={"algorithm": config.algorithm.model_copy(update={"kl_coef": 0.1})})
    assert predict(kl, prompts, GPU, SEVEN).memory.weights > plain.memory.weights


def test_the_segment_holds_what_is_sent() -> None:
    adapted, segments = replace(SEVEN, adapters=40_000_000), {}
    for sync in ("merged", "adapter"):
        config = make_config(lora={"sync": sync})
        segments[sync] = predict(config, PROMPTS, GPU, adapted).memory.segment
    assert segments == {"merged": 2 * SEVEN.num_params, "adapter": 2 * 40_000_000}


def test_adapters_products_are_counted_where_the_heap_keeps_their_places() -> None:
    """All layers' products count on a CPU, or with recomputed activations one layer's."""
    width, config = 28 * 1000, make_config()
    adapted = replace(SEVEN, adapted_outputs={"language_layers": width})
    for device, recomputed, layers in (("cpu", False, 28), ("cpu", True, 1), ("cuda", False, 0)):
        machine = PlannedMachine(device, 0, 1e11)
        chosen = with_trainer(config, gradient_checkpointing=recomputed)
        with_holes, without = (predict(chosen, PROMPTS, machine, shape) for shape in (adapted, SEVEN))
        tokens = workload(SEVEN, PROMPTS, chosen).slice_tokens
        expected = 2 * 1000 * layers * tokens * SEVEN.weight_bytes
        assert with_holes.memory.activations - without.memory.activations == expected


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
    needed = predict(config, PROMPTS, PlannedMachine("cpu", 0, 1e11)).needed_bytes
    tight = PlannedMachine("cpu", needed - 2**20, 1e11)
    changes = fitting_changes(config, PROMPTS, tight).fitting
    assert "trainer.gradient_checkpointing=true" in [key for key, _ in changes]
    assert all(plan.needed_bytes <= tight.memory_bytes for _, plan in changes)
    assert fitting_changes(config, PROMPTS, PlannedMachine("cpu", GIB, 1e11)).fitting == []
    lora = make_config(tiny_model, lora={"rank": 2})
    tight = PlannedMachine(
        "cpu", predict(lora, PROMPTS, PlannedMachine("cpu", 0, 1e11)).needed_bytes - 2**20, 1e11
    )
    assert "lora.sync=adapter" in [key for key, _ in fitting_changes(lora, PROMPTS, tight).fitting]


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
    install(model)
    seen_until = torch.tensor([160] * 96 + [128] * 32 + [160] * 32 + [256] * 96)  # two trees
    embeds = model.get_input_embeddings()(torch.zeros(1, num_tokens, dtype=torch.long))
    ignored = torch.zeros(1, 1, 1, 1)  # of four dimensions: transformers makes none itself
    tree = BlockAttention(seen_until)
    weights = {p.untyped_storage().data_ptr() for p in model.parameters()}
    with torch.autograd.graph.saved_tensors_hooks(lambda t: (kept.append(t), keep(t))[1], lambda t: t):
        model.get_decoder()(inputs_embeds=embeds, attention_mask=ignored, tree=tree, use_cache=False)
    pairs, num_keys = block_sizes(seen_until.numpy())
    saved = sum(size for place, size in sizes.items() if place not in weights) - pairs  # the masks
    stack = shape.language
    keys = key_values(stack, num_keys, repeated=False)
    assert saved == pytest.approx(stack.num_layers * (layer_values(stack) * num_tokens + keys), rel=0.15)
