"""Plain products are vLLM's own for a batch of tokens that all have the one adapter."""

from __future__ import annotations

import pytest
import torch

from vlrl.engine.lora_cpu import use_plain_products


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("widths", [(7,), (6, 3, 3)])
def test_they_are_vllms(dtype: torch.dtype, widths: tuple[int, ...]) -> None:
    from vllm.lora.layers import LoRAMapping
    from vllm.lora.punica_wrapper.punica_cpu import PunicaWrapperCPU

    generator = torch.Generator().manual_seed(0)

    def generated(*shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=generator).to(dtype)

    num_tokens, rank, width_in = 5, 4, 9
    inputs, base = generated(num_tokens, width_in), generated(num_tokens, sum(widths))
    low = tuple(generated(1, 1, rank, width_in) for _ in widths)
    high = tuple(generated(1, 1, width, rank) for width in widths)
    found = []
    for plain in (False, True):
        wrapper = PunicaWrapperCPU(16, 4, torch.device("cpu"))
        wrapper.update_metadata(LoRAMapping((1,) * num_tokens, (1,), is_prefill=True), [1], 2, 32)
        if plain:
            use_plain_products([wrapper])
        output = base.clone()
        wrapper.add_lora_linear(output, inputs, low, high, 1.0, widths)
        found.append(output)
    assert not torch.equal(found[0], base)
    assert torch.allclose(found[1], found[0], atol=1e-5 if dtype == torch.float32 else 0.1)


def test_other_wrappers_are_left_alone() -> None:
    class Kernels:
        def add_lora_linear(self) -> str:
            return "its own"

    wrapper = Kernels()
    use_plain_products([wrapper])
    assert wrapper.add_lora_linear() == "its own"
