"""AdamW on the host is torch's, and an element's bits are its own whatever slice it lies in."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest
import torch
from torch import Tensor

from vlrl.trainer.optimizers.host import LINE, HostAdamW

SIZES = [(1,), (7, 13), (300, 41), (4099,), (2 * LINE,)]
OPTIONS: dict[str, Any] = {"lr": 3e-3, "betas": (0.8, 0.93), "eps": 1e-7, "weight_decay": 0.1}


@pytest.fixture(params=[1, 3])
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


def parameters() -> list[Tensor]:
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(size, generator=generator).requires_grad_() for size in SIZES]


def stepped(optimizer: torch.optim.Optimizer, weights: list[Tensor], seeds: range) -> list[Tensor]:
    """Weights, steps and moments after steps that leave out a parameter each."""
    for seed in seeds:
        generator = torch.Generator().manual_seed(seed)
        for number, weight in enumerate(weights):
            gradient = torch.randn(weight.shape, generator=generator)
            weight.grad = None if (number + seed) % 4 == 0 else gradient
        optimizer.step()
    moments = [optimizer.state[w][name] for w in weights for name in ("step", "exp_avg", "exp_avg_sq")]
    return [*(w.detach() for w in weights), *moments]


def test_it_is_torch_s_adamw(threads: int) -> None:
    ours, theirs = parameters(), parameters()
    found = stepped(HostAdamW(ours, **OPTIONS), ours, range(5))
    expected = stepped(torch.optim.AdamW(theirs, **OPTIONS), theirs, range(5))
    for mine, torchs in zip(found, expected, strict=True):
        torch.testing.assert_close(mine, torchs, rtol=1e-6, atol=1e-7)


def test_whole_vectors_are_the_fused_kernel_s_to_the_last_bit(threads: int) -> None:
    ours, theirs = ([torch.linspace(-1, 1, 50 * LINE).requires_grad_()] for _ in range(2))
    found = stepped(HostAdamW(ours, **OPTIONS), ours, range(1, 5))
    expected = stepped(torch.optim.AdamW(theirs, fused=True, **OPTIONS), theirs, range(1, 5))
    assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))


@pytest.mark.parametrize("length", [1, 15, 16, LINE - 1, LINE + 1, 100 * LINE + 9])
def test_an_element_s_bits_do_not_depend_on_its_slice(length: int, threads: int) -> None:
    whole = torch.randn(101 * LINE, generator=torch.Generator().manual_seed(1))
    gradients = torch.randn(6, len(whole), generator=torch.Generator().manual_seed(2))
    part, rest = whole[-length:].clone().requires_grad_(), whole.clone().requires_grad_()
    optimizers = HostAdamW([part], **OPTIONS), HostAdamW([rest], **OPTIONS)
    for gradient in gradients:
        part.grad, rest.grad = gradient[-length:].clone(), gradient.clone()
        for optimizer in optimizers:
            optimizer.step()
    [of_part], [of_rest] = (list(optimizer.state.values()) for optimizer in optimizers)
    assert torch.equal(part, rest[-length:])
    assert torch.equal(of_part["exp_avg_sq"], of_rest["exp_avg_sq"][-length:])


@pytest.mark.parametrize("fused", [None, True])
def test_it_goes_on_from_torch_s_state(fused: bool | None) -> None:
    """A checkpoint may be an older one, or one of a GPU, where AdamW is fused."""
    weights, same = parameters(), parameters()
    theirs = torch.optim.AdamW(weights, fused=fused, **OPTIONS)
    stepped(theirs, weights, range(3))
    with torch.no_grad():
        for weight, value in zip(same, weights, strict=True):
            weight.copy_(value)
    ours = HostAdamW(same, **OPTIONS)
    ours.load_state_dict(deepcopy(theirs.state_dict()))
    found, expected = stepped(ours, same, range(3, 6)), stepped(theirs, weights, range(3, 6))
    for mine, torchs in zip(found, expected, strict=True):
        torch.testing.assert_close(mine, torchs, rtol=1e-6, atol=1e-7)
