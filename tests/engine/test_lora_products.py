"""Plain products are vLLM's own for a batch of tokens that all have the one adapter."""

from __future__ import annotations

import pytest
import torch

from vlrl.engine.cpu.lora_products import use_plain_products


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


@pytest.mark.parametrize("slots", [(1, 1, 0, -1, 1), (0, 0, 0, 0, 0), (1, 1, 1, 1, 1), (-1, -1, -1, -1, -1)])
def test_tokens_of_several_adapters_are_multiplied_with_their_own(slots: tuple[int, ...]) -> None:
    """vLLM's slots are the other way round than the ids here: it is the slot that counts."""
    from vllm.lora.layers import LoRAMapping
    from vllm.lora.punica_wrapper.punica_cpu import PunicaWrapperCPU

    generator = torch.Generator().manual_seed(0)
    inputs, base = torch.randn(5, 9, generator=generator), torch.randn(5, 9, generator=generator)
    low = tuple(torch.randn(2, 1, 4, 9, generator=generator) for _ in range(2))
    high = tuple(torch.randn(2, 1, width, 4, generator=generator) for width in (6, 3))
    ids = tuple({-1: 0, 0: 2, 1: 1}[slot] for slot in slots)
    wrapper = PunicaWrapperCPU(16, 5, torch.device("cpu"))
    wrapper.update_metadata(LoRAMapping(ids, ids, is_prefill=True), [2, 1], 3, 32)
    use_plain_products([wrapper])
    found = base.clone()
    wrapper.add_lora_linear(found, inputs, low, high, 0.5, (6, 3))
    for row, slot in enumerate(slots):
        added = [0.5 * inputs[row] @ a[slot, 0].T @ b[slot, 0].T for a, b in zip(low, high, strict=True)]
        expected = base[row] + (torch.cat(added) if slot >= 0 else 0.0)
        assert torch.allclose(found[row], expected, atol=1e-5)


def test_other_wrappers_are_left_alone() -> None:
    class Kernels:
        def add_lora_linear(self) -> str:
            return "its own"

    wrapper = Kernels()
    use_plain_products([wrapper])
    assert wrapper.add_lora_linear() == "its own"
