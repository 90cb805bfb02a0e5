"""FlexAttention on an NVIDIA GPU: compiled, forward and backward, like blocks."""

from __future__ import annotations

import pytest
import torch

from vlrl.model.attention import choose
from vlrl.model.kernels import flex
from vlrl.model.kernels.trial import HeadShape
from vlrl.model.tree_attention import BlockAttention, FlexAttention, TreeAttention

pytestmark = pytest.mark.gpu

HEADS = HeadShape(8, 2, 128, torch.bfloat16)
LENGTHS = (900, 1100, 1500, 1600, 2000, 2100, 2500, 3000, 3100, 4000, 4100, 6000)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_it_is_chosen_and_agrees_with_blocks(dtype: torch.dtype) -> None:
    device = torch.device("cuda")
    kind, choice = choose("auto", device, HeadShape(8, 2, 128, dtype))
    assert kind == "flex", choice
    ends = [3000] * 1000 + [1800] * 800 + [3000] * 400 + [2600] * 400 + [3000] * 400
    seen_until = torch.tensor(ends, dtype=torch.int32, device=device)
    inputs = [x.requires_grad_() for x in HeadShape(8, 2, 128, dtype).inputs(3000, device)]

    def results(attention: TreeAttention) -> list[torch.Tensor]:
        output = attention.attend(*inputs, scale=None, window=None)
        return [output, *torch.autograd.grad(output.float().sin().sum(), inputs)]

    tolerance = 1e-2 if dtype == torch.float32 else 2e-2
    for ours, theirs in zip(
        results(FlexAttention(seen_until)), results(BlockAttention(seen_until)), strict=True
    ):
        assert float((ours - theirs).abs().max()) < tolerance * float(theirs.abs().max())


def test_twelve_lengths_are_compiled_twice_a_bucket() -> None:
    """Once with gradient and once without; the rest is found again."""
    device = torch.device("cuda")
    torch.compiler.reset()
    counters = torch._dynamo.utils.counters["stats"]
    before = counters["unique_graphs"]
    for length in LENGTHS:
        seen_until = torch.full((length,), length, dtype=torch.int32, device=device)
        inputs = HEADS.inputs(length, device)
        with torch.no_grad():
            FlexAttention(seen_until).attend(*inputs, scale=None, window=None)
        inputs = [x.requires_grad_() for x in inputs]
        FlexAttention(seen_until).attend(*inputs, scale=None, window=None).float().sum().backward()
    assert counters["unique_graphs"] - before == 2 * len({flex.bucket(length) for length in LENGTHS})
