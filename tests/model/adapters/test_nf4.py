"""4-bit layers below adapters: bitsandbytes' own rounding, and gradients without a whole weight kept."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from vlrl.config.memory import LoraConfig
from vlrl.model.adapters.nf4 import BLOCK, BYTES_PER_WEIGHT, Nf4Linear, round_layers
from vlrl.model.lora import add_adapters


def layer_of(dtype: torch.dtype, columns: int = 128) -> tuple[nn.Linear, Nf4Linear]:
    torch.manual_seed(0)
    layer = nn.Linear(columns, 24).to(dtype)
    return layer, Nf4Linear(layer.weight.detach(), layer.bias)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("columns", [128, 65])
def test_a_weight_is_rounded_as_by_bitsandbytes(dtype: torch.dtype, columns: int) -> None:
    bitsandbytes = pytest.importorskip("bitsandbytes", reason="bitsandbytes is not installed: make dev")
    layer, rounded = layer_of(dtype, columns)
    with torch.compiler.set_stance("force_eager"):  # compilers take half a minute
        bits, state = bitsandbytes.functional.quantize_4bit(
            layer.weight.detach(), blocksize=BLOCK, quant_type="nf4"
        )
        expected = bitsandbytes.functional.dequantize_4bit(bits, state)
    assert torch.equal(rounded.rounded(rounded.weight, rounded.scales), expected)
    assert 1e-3 < (expected - layer.weight).abs().mean() < 0.1 * layer.weight.abs().max()
    given = torch.randn(5, columns, dtype=dtype)
    assert torch.equal(rounded(given), given @ expected.T + layer.bias)


def test_gradients_are_those_of_the_rounded_weight_and_bits_alone_are_kept() -> None:
    _, rounded = layer_of(torch.float32)
    given = torch.randn(5, 128, requires_grad=True)
    kept: list[int] = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: kept.append(t.nbytes) or t, lambda t: t):
        found = rounded(given)
    found.square().sum().backward()
    expected = 2 * found.detach() @ rounded.rounded(rounded.weight, rounded.scales)
    assert torch.allclose(given.grad, expected, atol=1e-5)
    assert sum(kept) == 24 * 128 * BYTES_PER_WEIGHT


def test_adapters_are_put_on_rounded_layers_as_on_others() -> None:
    model = nn.ModuleDict({"layers": nn.ModuleDict({"up": nn.Linear(64, 8)})})
    before = model.get_submodule("layers.up")
    round_layers(model, ["layers.up"])
    add_adapters(model, LoraConfig(rank=2, targets=["*.up.weight"]), seed=0)
    trained = {name for name, parameter in model.named_parameters() if parameter.requires_grad}
    assert trained == {f"layers.up.lora_{half}.default.weight" for half in "AB"}
    given = torch.randn(3, 64)
    difference = (model.get_submodule("layers.up")(given) - before(given)).abs().max()
    assert 1e-3 < difference < 0.5
