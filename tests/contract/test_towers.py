"""Vision towers attend within all their windows at once: the same features and gradients, and few calls.

Every family's tower, against transformers' own, which calls attention once for every window.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from builders import family_config, random_image, row
from plain_model import model_of
from torch import Tensor

from vlrl.model.features import sum_of
from vlrl.model.kernels import spans
from vlrl.model.omni.thinker import core_of
from vlrl.processors.auto import open_processor
from vlrl.registry import BUILT_IN
from vlrl.trainer import choices

FAMILIES = sorted(BUILT_IN["processors"])
QWEN = ("qwen2_5_omni", "qwen2_5_vl", "qwen2_vl", "qwen3_vl", "qwen3_vl_moe", "qwen3_5", "qwen3_5_moe")
WITH_SPANS = (*QWEN, "glm4v", "glm4v_moe", "minicpmv4_6")
TOLERANCE = 1e-5
CUDA, CPU = torch.device("cuda"), torch.device("cpu")


class BlockDiagonal:
    """What varlen_attn computes, by one mask of all tokens; counts its calls."""

    def __init__(self) -> None:
        self.num_calls = 0

    def __call__(
        self, query: Tensor, key: Tensor, value: Tensor, starts: Tensor, longest: int, scale: float
    ) -> Tensor:
        self.num_calls += 1
        lengths = starts.diff()
        assert longest == int(lengths.max())
        assert int(starts[-1]) == len(query) == len(key) == len(value)
        numbers = torch.repeat_interleave(torch.arange(len(lengths)), lengths.long())
        q, k, v = (x.transpose(0, 1)[None] for x in (query, key, value))
        mask = numbers[:, None] == numbers[None]
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=scale)[0].transpose(0, 1)


def load(folder: Path) -> Any:
    return model_of(folder, attn_implementation="sdpa")


def pixels_of(name: str, folder: Path, sizes: Sequence[tuple[int, int]]) -> dict[str, Tensor]:
    """The inputs of a tower for images of several sizes; none that fills its windows evenly."""
    config = family_config(folder, processor={"min_pixels": 4096, "max_pixels": 400 * 400})
    processor = open_processor(config)
    images = [random_image(*size, seed=number) for number, size in enumerate(sizes)]
    sample = processor.sample(row("Look.", images))
    return {key: torch.tensor(value) for key, value in processor.pixels(sample.media).items()}


SIZES = ((300, 180), (64, 96), (210, 210))


@pytest.fixture(params=FAMILIES)
def family(request: pytest.FixtureRequest, tiny_family: Callable[[str], Path]) -> tuple[str, Path]:
    return request.param, tiny_family(request.param)


def results(model: Any, pixels: dict[str, Tensor]) -> tuple[Tensor, dict[str, Tensor]]:
    """All features as one row, and the gradient of every weight that they depend on."""
    features = core_of(model).get_image_features(**pixels, return_dict=True)
    pooled = features.pooler_output
    flat = torch.cat([x.flatten() for x in (pooled if isinstance(pooled, (list, tuple)) else [pooled])])
    (sum_of(features) + flat.sin().sum()).backward()
    gradients = {n: p.grad.clone() for n, p in model.named_parameters() if p.grad is not None}
    model.zero_grad()
    return flat.detach(), gradients


@pytest.mark.parametrize(
    ("kind", "checkpointed"),
    [
        *[("by_length", False), ("varlen", False), ("varlen", True)],
        *[("by_run", False), ("by_run", True)],
    ],
)
def test_features_and_gradients_are_transformers_own(
    family: tuple[str, Path], kind: spans.SpanKind, checkpointed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, folder = family
    stand_in = BlockDiagonal()
    monkeypatch.setattr(spans, "KERNELS", {**spans.KERNELS, "varlen": stand_in})
    model = load(folder)
    if name not in WITH_SPANS:
        assert not list(spans._layers(model))
        return
    pixels = pixels_of(name, folder, SIZES)
    expected, expected_gradients = results(model, pixels)
    spans.install(model, kind)
    if checkpointed:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
        model.train()
    found, gradients = results(model, pixels)
    assert (found - expected).abs().max() <= TOLERANCE * expected.abs().max()
    scale = max(float(g.abs().max()) for g in expected_gradients.values())
    assert gradients.keys() == expected_gradients.keys()
    for parameter, gradient in gradients.items():
        assert (gradient - expected_gradients[parameter]).abs().max() <= TOLERANCE * scale, parameter
    assert (stand_in.num_calls > 0) == (kind == "varlen")


def test_a_tower_attends_once_a_layer_whatever_its_images_are(
    family: tuple[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """transformers' own way is a call for each window of each image."""
    name, folder = family
    model = load(folder)
    num_layers = sum(
        1
        for module in model.modules()
        if type(module).__name__.endswith(
            ("VisionAttention", "SiglipAttention", "PixtralAttention", "CLIPAttention")
        )
    )
    calls = 0
    original = F.scaled_dot_product_attention

    def counted(*args: Any, **kwargs: Any) -> Tensor:
        nonlocal calls
        calls += 1
        return original(*args, **kwargs)

    monkeypatch.setattr(F, "scaled_dot_product_attention", counted)
    stand_in = BlockDiagonal()
    monkeypatch.setattr(spans, "KERNELS", {**spans.KERNELS, "varlen": stand_in})
    spans.install(model, "varlen")
    for sizes in (SIZES[:1], SIZES):
        pixels, calls = pixels_of(name, folder, sizes), 0
        with torch.no_grad():
            core_of(model).get_image_features(**pixels, return_dict=True)
        assert 0 < calls <= 2 * num_layers, f"{calls} calls of {num_layers} layers"
        assert calls == num_layers


def test_the_windows_are_what_transformers_calls_attention_for(
    tiny_family: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """2,464 calls for one image of 1,280 tokens in Qwen2.5-VL's 32 layers."""
    folder = tiny_family("qwen2_5_vl")
    model, pixels = load(folder), pixels_of("qwen2_5_vl", folder, [(380, 390)])
    lengths: list[int] = []
    original = F.scaled_dot_product_attention

    def counted(query: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        lengths.append(query.shape[0] * query.shape[2])
        return original(query, *args, **kwargs)

    monkeypatch.setattr(F, "scaled_dot_product_attention", counted)
    with torch.no_grad():
        core_of(model).get_image_features(**pixels, return_dict=True)
        each = len(lengths)
        spans.install(model, "by_length")
        lengths.clear()
        core_of(model).get_image_features(**pixels, return_dict=True)
    layers = model.config.vision_config.depth
    assert each > 4 * layers
    assert len(lengths) <= 4 * layers
    assert sum(lengths) == layers * len(pixels["pixel_values"])


def test_what_is_chosen_is_said_with_its_cost(family: tuple[str, Path]) -> None:
    """There is no GPU here, so the trial of its kernel fails: that is a reason too."""
    name, folder = family
    model = load(folder)
    kind, on_cpu = spans.choose(model, CPU)
    if name not in WITH_SPANS:
        assert (kind, on_cpu) == ("each", None) == spans.choose(model, CUDA)
        return
    assert kind == "by_run" and on_cpu is not None and not on_cpu.is_slower
    kind, choice = spans.choose(model, CUDA)
    assert kind == "by_length" and choice is not None and choice.is_slower
    assert "flash kernels compute in bfloat16, and model.dtype is float32" in choice.reason
    kind, choice = spans.choose(model.to(torch.bfloat16), CUDA)
    assert kind == "by_length" and choice is not None
    assert "varlen_attn does not work here" in choice.reason and choice.cost
    eager = model_of(folder, attn_implementation="eager")
    assert spans.choose(eager, CUDA) == ("each", None)


def test_a_cpu_without_the_kernel_attends_as_transformers_does(
    tiny_family: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(*_: Any) -> Tensor:
        raise AttributeError("no such operator")

    monkeypatch.setattr(spans, "attend_within", missing)
    kind, choice = spans.choose(load(tiny_family("qwen2_5_vl")), CPU)
    assert kind == "each" and choice is not None and choice.is_slower
    assert choice.reason == "torch's flash attention does not work here: AttributeError: no such operator"


@pytest.mark.parametrize("dense", ["qwen3_vl", "qwen3_5", "glm4v"])
def test_experts_are_multiplied_in_one_product_and_it_is_said(
    tiny_family: Callable[[str], Path], dense: str
) -> None:
    choice = choices._experts_choice(load(tiny_family(f"{dense}_moe")), CPU)
    assert choice is not None and not choice.is_slower and "grouped_mm" in choice.reason
    assert choices._experts_choice(load(tiny_family(dense)), CPU) is None


@pytest.mark.parametrize("is_installed", [False, True])
def test_on_a_gpu_it_is_said_how_states_are_computed(
    tiny_family: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch, is_installed: bool
) -> None:
    monkeypatch.setattr(choices, "find_spec", lambda name: object() if is_installed else None)
    model = load(tiny_family("qwen3_5"))
    choice = choices._state_choice(model, CUDA)
    assert choice is not None and choice.is_slower is not is_installed
    assert is_installed or "flash-linear-attention is not installed" in choice.reason
    assert choices._state_choice(model, CPU) is None
    assert choices._state_choice(load(tiny_family("qwen3_vl")), CUDA) is None


def test_on_a_gpu_whose_trial_passes_it_is_one_call(
    tiny_family: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = load(tiny_family("qwen2_5_vl")).to(torch.bfloat16)
    monkeypatch.setattr(spans, "_failure", lambda kind, device, heads: "")
    kind, choice = spans.choose(model, CUDA)
    assert kind == "varlen" and choice is not None and not choice.is_slower


def test_the_trial_of_varlen_compares_it_with_plain_attention(
    tiny_family: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    heads = spans.HeadShape(4, 4, 80, torch.bfloat16)
    monkeypatch.setattr(spans, "KERNELS", {"varlen": BlockDiagonal()})
    assert spans._failure("varlen", CPU, heads) == ""

    def whole(
        query: Tensor, key: Tensor, value: Tensor, starts: Tensor, longest: int, scale: float
    ) -> Tensor:
        return BlockDiagonal()(query, key, value, starts[[0, -1]], len(query), scale)

    monkeypatch.setattr(spans, "KERNELS", {"varlen": whole})
    assert "it differs from plain attention" in spans._failure("varlen", CPU, heads)
