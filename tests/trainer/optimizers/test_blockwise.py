"""AdamW block by block is torch's AdamW, bit for bit."""

from __future__ import annotations

from copy import deepcopy

import pytest
import torch
from torch import Tensor

from vlrl.trainer.optimizers import blockwise
from vlrl.trainer.optimizers.blockwise import BlockwiseAdamW

SIZES = [(1,), (7, 13), (300, 41), (4099,)]
OPTIONS = {"lr": 3e-3, "betas": (0.8, 0.93), "eps": 1e-7, "weight_decay": 0.1}


def parameters() -> list[Tensor]:
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(size, generator=generator).requires_grad_() for size in SIZES]


def stepped(optimizer: torch.optim.Optimizer, weights: list[Tensor], seeds: range) -> list[Tensor]:
    for seed in seeds:
        generator = torch.Generator().manual_seed(seed)
        for number, weight in enumerate(weights):
            weight.grad = None if (number + seed) % 4 == 0 else torch.randn(weight.shape, generator=generator)
        optimizer.step()
    moments = [optimizer.state[w][name] for w in weights for name in ("step", "exp_avg", "exp_avg_sq")]
    return [*(w.detach() for w in weights), *moments]


@pytest.mark.parametrize("elements", [64, 1000, 10**6])
def test_weights_and_moments_are_torch_s_to_the_last_bit(
    elements: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blockwise, "ELEMENTS_PER_THREAD", elements)
    ours, theirs = parameters(), parameters()
    found = stepped(BlockwiseAdamW(ours, **OPTIONS), ours, range(5))
    expected = stepped(torch.optim.AdamW(theirs, **OPTIONS), theirs, range(5))
    assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))


def test_it_goes_on_from_torch_s_state(monkeypatch: pytest.MonkeyPatch) -> None:
    """A checkpoint may be an older one, or one of a GPU, where AdamW is fused."""
    monkeypatch.setattr(blockwise, "ELEMENTS_PER_THREAD", 100)
    weights, same = parameters(), parameters()
    theirs = torch.optim.AdamW(weights, **OPTIONS)
    stepped(theirs, weights, range(3))
    with torch.no_grad():
        for weight, value in zip(same, weights, strict=True):
            weight.copy_(value)
    ours = BlockwiseAdamW(same, **OPTIONS)
    ours.load_state_dict(deepcopy(theirs.state_dict()))
    found, expected = stepped(ours, same, range(3, 6)), stepped(theirs, weights, range(3, 6))
    assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))
