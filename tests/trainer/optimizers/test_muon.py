"""Muon over ZeRO-3's slices is torch's Muon over whole matrices, whatever the number of ranks."""

from __future__ import annotations

import muon_ranks
import pytest
import torch
from muon_ranks import DECAY, MOMENTUM, NUM_STEPS, RATE, SHAPES, flat_slices, tensors
from rank_processes import RankProcesses, free_port
from torch import Tensor, nn

from vlrl.model.parts import hidden_matrices
from vlrl.trainer.optimizers.muon import orthogonal


@pytest.fixture(scope="module")
def processes() -> RankProcesses:
    with RankProcesses(3) as started:
        yield started


def torch_steps() -> tuple[list[Tensor], list[Tensor]]:
    """Weights after torch's own optimizers, and Muon's momenta."""
    whole = [nn.Parameter(tensor) for tensor in tensors(0)]
    muon = torch.optim.Muon(
        whole[:-1], lr=RATE, momentum=MOMENTUM, weight_decay=DECAY, adjust_lr_fn="match_rms_adamw"
    )
    adamw = torch.optim.AdamW(whole[-1:], lr=RATE, betas=(0.9, 0.95), eps=1e-8, weight_decay=DECAY)
    for step in range(NUM_STEPS):
        for parameter, gradient in zip(whole, tensors(step + 1), strict=True):
            parameter.grad = gradient
        muon.step()
        adamw.step()
    return [p.detach() for p in whole], [muon.state[p]["momentum_buffer"] for p in whole[:-1]]


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.bfloat16, 1e-6), (torch.float32, 0.02)])
def test_slices_move_as_torch_moves_whole_matrices(
    processes: RankProcesses, dtype: torch.dtype, tolerance: float
) -> None:
    """torch iterates in bfloat16, so in float32 it is the same to three digits."""
    port = free_port()
    found = processes.run(muon_ranks.steps, [(rank, 3, port, dtype) for rank in range(3)])
    weights, momenta = torch_steps()
    for rank, (flat, rest, momentum) in enumerate(found):
        assert torch.allclose(flat, flat_slices(weights[:-1], rank, 3), atol=tolerance)
        assert torch.allclose(rest, flat_slices(weights[-1:], rank, 3), atol=1e-6)
        assert torch.allclose(momentum, flat_slices(momenta, rank, 3), atol=1e-6)


@pytest.mark.parametrize("shape", [*SHAPES, (40, 8)])
def test_what_is_orthogonal_has_the_same_singular_vectors(shape: tuple[int, int]) -> None:
    matrix = torch.randn(shape, generator=torch.Generator().manual_seed(1))
    left, values, right = torch.linalg.svd(matrix, full_matrices=False)
    inside = left.T @ orthogonal(matrix, torch.float32) @ right.T
    new_values = inside.diagonal()
    assert torch.allclose(inside, torch.diag(new_values), atol=1e-3)
    large = values > 0.1 * values.max()  # five iterations do not bring up the smallest
    assert (new_values[large] > 0.6).all() and (new_values < 1.3).all()


def test_matrices_are_those_of_linear_layers_but_the_head() -> None:
    parts = {"embed_tokens": nn.Embedding(4, 2), "up": nn.Linear(2, 3), "lm_head": nn.Linear(2, 4)}
    model = nn.ModuleDict(parts | {"patch": nn.Conv2d(1, 2, 2), "norm": nn.LayerNorm(2)})
    assert [id(p) for p in hidden_matrices(model)] == [id(model["up"].weight)]
