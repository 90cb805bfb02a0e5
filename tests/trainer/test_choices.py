"""What a rank chooses for its device, decided by functions that need none."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from builders import make_config
from plain_model import model_of

from vlrl.choices import MachineChoice
from vlrl.model import attention
from vlrl.model.head_logprobs import chunk_bytes_on
from vlrl.trainer import choices
from vlrl.trainer.choices import choose_for, optimizer_choice

CPU, CUDA = torch.device("cpu"), torch.device("cuda")


def test_on_a_cpu_what_is_wanted_is_used_and_said(tiny_model: Path) -> None:
    before = torch.get_float32_matmul_precision()
    try:
        chosen = choose_for(model_of(tiny_model), make_config(tiny_model), CPU)
    finally:
        torch.set_float32_matmul_precision(before)
    assert (chosen.device_type, chosen.attention, chosen.spans) == ("cpu", "nodes", "by_run")
    assert [choice.name for choice in chosen.all] == [
        "attention of the language model",
        "attention of the vision tower",
        "optimizer",
        "float32 products",
    ]
    assert not any(choice.is_slower for choice in chosen.all[:3])


def test_kernels_are_tried_with_the_products_that_were_chosen(
    tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A small part's gradients are computed otherwise where oneDNN multiplies: that way is tried, too."""
    order: list[str] = []

    def choose(*arguments: Any) -> Any:
        order.append("kernel")
        return attention.choose(*arguments)

    def choose_products() -> MachineChoice:
        order.append("products")
        return MachineChoice.as_wanted("float32 products", "oneDNN", "")

    monkeypatch.setattr(choices, "attention", SimpleNamespace(choose=choose, heads_of=attention.heads_of))
    monkeypatch.setattr(choices, "choose_products", choose_products)
    choose_for(model_of(tiny_model), make_config(tiny_model), CPU)
    assert order == ["products", "kernel"]


def test_a_gpu_that_can_do_nothing_is_said_to(tiny_model: Path) -> None:
    """There is none here: every trial fails, and every slower way has its reason and its cost."""
    config = make_config(tiny_model, trainer={"offload_optimizer": True})
    chosen = choose_for(model_of(tiny_model), config, CUDA)
    assert (chosen.attention, chosen.spans) == ("blocks", "by_length")
    assert all(choice.is_slower and choice.reason and choice.cost for choice in chosen.all)
    assert len(chosen.all) == 3


@pytest.mark.parametrize(
    ("device_type", "sections", "used", "is_slower"),
    [
        ("cpu", {}, "fused AdamW", False),
        ("cpu", {"trainer": {"offload_optimizer": True}}, "fused AdamW", False),
        ("cuda", {}, "fused AdamW", False),
        ("cuda", {"trainer": {"offload_optimizer": True}}, "AdamW on the host", True),
        ("cuda", {"optim": {"state": "8bit"}}, "bitsandbytes' AdamW", False),
    ],
)
def test_the_optimizer_is_said(
    device_type: str, sections: dict[str, Any], used: str, is_slower: bool
) -> None:
    choice = optimizer_choice(make_config(**sections), device_type)
    assert (choice.used, choice.is_slower) == (used, is_slower)


@pytest.mark.parametrize(
    ("implementation", "capability", "is_slower"),
    [("grouped_mm", (9, 0), False), ("grouped_mm", (7, 5), True), ("eager", (9, 0), True)],
)
def test_experts_that_are_multiplied_one_by_one_are_said(
    implementation: str, capability: tuple[int, int], is_slower: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)
    config = SimpleNamespace(num_experts=4, _experts_implementation=implementation)
    model = SimpleNamespace(get_decoder=lambda: SimpleNamespace(config=config))
    choice = choices._experts_choice(model, CUDA)
    assert choice is not None and choice.is_slower == is_slower
    assert choices._experts_choice(model, CPU).is_slower == (implementation == "eager")  # type: ignore[union-attr]


def test_chunks_of_logits_are_larger_on_a_gpu_unless_the_config_says_otherwise() -> None:
    assert chunk_bytes_on("cpu", None) == 64 * 2**20
    assert chunk_bytes_on("cuda", None) == 256 * 2**20
    assert chunk_bytes_on("cuda", 16) == chunk_bytes_on("cpu", 16) == 16 * 2**20
