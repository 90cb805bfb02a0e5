"""FlexAttention on an NVIDIA GPU: compiled, forward and backward, like blocks."""

from __future__ import annotations

import pytest
import torch

from vlrl.model.attention import choose
from vlrl.model.tree_attention import BlockAttention, FlexAttention, TreeAttention

pytestmark = pytest.mark.gpu


def test_it_is_chosen_and_agrees_with_blocks() -> None:
    device = torch.device("cuda")
    assert choose("auto", device)[0] == "flex"
    ends = [3000] * 1000 + [1800] * 800 + [3000] * 400 + [2600] * 400 + [3000] * 400
    seen_until = torch.tensor(ends, dtype=torch.int32, device=device)
    inputs = [torch.randn(1, heads, 3000, 128, device=device).requires_grad_() for heads in (8, 2, 2)]

    def results(attention: TreeAttention) -> list[torch.Tensor]:
        output = attention.attend(*inputs, scale=None, window=None)
        return [output, *torch.autograd.grad(output.sin().sum(), inputs)]

    for ours, theirs in zip(
        results(FlexAttention(seen_until)), results(BlockAttention(seen_until)), strict=True
    ):
        assert float((ours - theirs).abs().max()) < 1e-2 * float(theirs.abs().max())
