"""`vlrl plan` without loading anything: counts are the model's own, and predictions move as they must."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from builders import make_config
from plain_model import model_of
from planned_models import SEVEN, with_trainer
from tiny_families import BUILDERS

from vlrl.errors import ConfigError
from vlrl.model.attention import install
from vlrl.model.kernels.nodes import NodeAttention
from vlrl.model.parts import part_of
from vlrl.model.recurrent import layers as recurrent_layers
from vlrl.model.recurrent.tree import RecurrentTree
from vlrl.model.tree_attention import BlockAttention, TreeAttention, block_sizes
from vlrl.plan.changes import fitting_changes
from vlrl.plan.machine import PlannedMachine
from vlrl.plan.memory import BUCKET_PARAMS, MAX_LIVE_PARAMS, UPDATED_PARAMS
from vlrl.plan.predict import GIB, predict
from vlrl.plan.saved.layers import key_values, stack_bytes
from vlrl.plan.shapes import read_shape
from vlrl.plan.workload import Prompts, workload

PROMPTS = Prompts(text_tokens=40, num_images=1, image_pixels=56 * 84, completion_tokens=12)
GPU = PlannedMachine("cuda", 80 * GIB, 400e12)
ONE = replace(GPU, gpus_per_node=1)


@pytest.mark.parametrize("family", sorted(BUILDERS))
def test_shapes_are_the_models(family: str, tmp_path: Path) -> None:
    """Shapes of every family come from config.json alone."""
    folder = BUILDERS[family](tmp_path / family)
    model: Any = model_of(folder)
    (folder / "model.safetensors").unlink()
    shape = read_shape(make_config(folder))
    assert shape.num_params == sum(p.numel() for p in model.parameters())
    assert shape.num_trained == shape.num_params - shape.params.get("audio_tower", 0)
    for part, count in shape.params.items():
        assert count == sum(p.numel() for n, p in model.named_parameters() if part_of(n) == part)
    assert shape.language.num_layers == model.config.get_text_config().num_hidden_layers
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
    lora = {"rank": 2, "targets": ["*.0.self_attn.q_proj.weight"], "sync": "adapter"}
    policies = {"a": {"agents": ["x"]}, "b": {"agents": ["y"]}, "c": {"agents": ["z"], "copies": "a"}}
    several = read_shape(make_config(tiny_model, lora=lora, policies=policies))
    assert (several.num_trained, several.adapters) == (2 * adapted.adapters, 3 * adapted.adapters)
    assert several.adapted_outputs == {"language_layers": 3 * 128}
    config.model.freeze = ["nothing"]
    with pytest.raises(ConfigError, match="names no parameter"):
        read_shape(config)


def test_a_model_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no config\.json found"):
        read_shape(make_config(tmp_path))


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
    tight = replace(GPU, memory_bytes=needed - 2**19)
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
    assert offloaded.memory.host >= plain.memory.optimizer
    small = config.model_copy(update={"optim": config.optim.model_copy(update={"state": "8bit"})})
    moments = predict(small, prompts, GPU, SEVEN).memory.optimizer - SEVEN.num_params  # 4 bytes on 4 ranks
    assert moments == pytest.approx((plain.memory.optimizer - SEVEN.num_params) / 4, rel=0.02)
    muon = config.model_copy(update={"optim": config.optim.model_copy(update={"name": "muon"})})
    saved = plain.memory.optimizer - predict(muon, prompts, GPU, SEVEN).memory.optimizer
    assert saved == SEVEN.num_matrix_weights  # one moment of 4 bytes on 4 ranks
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
    memory = predict(config, PROMPTS, ONE, SEVEN).memory
    bucket = 500_000_000 * 4
    static = memory.weights + memory.gradients + memory.optimizer - bucket
    assert static == pytest.approx(18 * SEVEN.num_params, rel=1e-6)


def test_the_optimizers_step_works_on_a_part_of_the_slice() -> None:
    """DeepSpeed's sub-groups: flat gradients of a billion parameters at a time."""
    config = make_config()
    config.model.dtype = "bfloat16"
    assert predict(config, PROMPTS, ONE, SEVEN).memory.update == 4 * 10**9
    many = predict(with_trainer(config, num_ranks=16), PROMPTS, GPU, SEVEN)
    assert many.memory.update == 4 * -(-SEVEN.num_params // 16)
    on_cpu = predict(config, PROMPTS, replace(ONE, device="cpu", gpus_per_node=None), SEVEN)
    assert on_cpu.memory.update == 4 * 10**9


def test_offloaded_states_take_their_gradients_along() -> None:
    """What stays on the GPU of an offloaded optimizer is the bucket that gradients are reduced in."""
    config = make_config()
    config.model.dtype = "bfloat16"
    plain, offloaded = (
        predict(with_trainer(config, offload_optimizer=on), PROMPTS, ONE, SEVEN).memory
        for on in (False, True)
    )
    assert (offloaded.gradients, offloaded.optimizer, offloaded.update) == (500_000_000 * 4, 0, 0)
    moved = plain.gradients - offloaded.gradients
    assert offloaded.host == plain.optimizer + 2 * moved
    weights = predict(with_trainer(config, offload_parameters=True), PROMPTS, ONE, SEVEN).memory
    assert (weights.weights, weights.host) == (0, plain.weights)
    assert weights.gathered == 10**9 * 2  # ZeRO-3 fetches as much ahead, from host memory too


def test_a_moving_average_of_the_policy_is_in_host_memory_in_float32() -> None:
    averaged = {"kl_coef": 0.1, "reference": {"every": 1, "mix": 0.01}}
    reset = {"kl_coef": 0.1, "reference": {"every": 100}}
    host = []
    for algorithm in (reset, averaged):
        config = make_config(algorithm=algorithm)
        config.model.dtype = "bfloat16"
        host.append([
            predict(with_trainer(config, offload_optimizer=on), PROMPTS, ONE, SEVEN).memory.host
            for on in (False, True)
        ])  # fmt: skip
    assert [after - before for before, after in zip(*host, strict=True)] == [4 * SEVEN.num_trained] * 2


def test_sizes_are_the_pinned_deepspeeds() -> None:
    from deepspeed.runtime.zero.config import DeepSpeedZeroConfig

    zero = DeepSpeedZeroConfig(stage=3)
    assert zero.sub_group_size == UPDATED_PARAMS
    assert zero.reduce_bucket_size == BUCKET_PARAMS
    assert zero.max_live_parameters == MAX_LIVE_PARAMS


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


@pytest.mark.parametrize(
    "family",
    [
        *("qwen2_5_vl", "qwen2_5_omni", "qwen3_vl", "qwen3_vl_moe", "qwen3_5", "qwen3_5_moe"),
        *("internvl", "internvl3_5", "internvl3_5_moe", "glm4v", "glm4v_moe", "gemma4"),
    ],
)
@pytest.mark.parametrize("attention", [NodeAttention, BlockAttention])
def test_saved_values_of_a_layer_are_what_autograd_keeps(
    family: str, attention: type[TreeAttention], tmp_path: Path
) -> None:
    """The formula against a real decoder, every saved tensor counted once by its storage."""
    folder = BUILDERS[family](tmp_path / family)
    model: Any = model_of(folder, attn_implementation="sdpa")
    shape, num_tokens = read_shape(make_config(folder)), 512
    sizes: dict[int, int] = {}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        sizes[storage.data_ptr()] = storage.nbytes() // tensor.element_size()
        return tensor

    kept: list[torch.Tensor] = []  # alive, so that no storage is counted for another
    install(model)
    recurrent_layers.install(model)
    seen_until = torch.tensor([320] * 192 + [256] * 64 + [320] * 64 + [512] * 192)  # two trees
    embeds = model.get_input_embeddings()(torch.zeros(1, num_tokens, dtype=torch.long))
    ignored = torch.zeros(1, 1, 1, 1)  # of four dimensions: transformers makes none itself
    tree = attention(seen_until)
    weights = {p.untyped_storage().data_ptr() for p in model.parameters()}
    with torch.autograd.graph.saved_tensors_hooks(lambda t: (kept.append(t), keep(t))[1], lambda t: t):
        model.get_decoder()(
            inputs_embeds=embeds,
            attention_mask=ignored,
            tree=tree,
            use_cache=False,
            **({"states": RecurrentTree(seen_until)} if shape.language.recurrence else {}),
        )
    masks, num_keys = block_sizes(seen_until.numpy()) if attention is BlockAttention else (0, num_tokens)
    saved = sum(size for place, size in sizes.items() if place not in weights) - masks
    stack = shape.language
    keys = key_values(stack, num_keys, repeated=False)
    assert saved * 4 == pytest.approx(stack_bytes(stack, num_tokens, keys, 4, False), rel=0.15)
