"""Ranks that step vlrl's Muon over slices cut as ZeRO-3 does, in processes of their own."""

from __future__ import annotations

from collections.abc import Sequence
from unittest.mock import patch

import torch
from torch import Tensor, distributed

SHAPES = ((5, 3), (4, 4), (3, 7), (2, 9), (6, 1))
"""Matrices; with two ranks the last one is alone in its round."""
VECTOR = (5,)
RATE, DECAY, MOMENTUM = 0.1, 0.2, 0.9
NUM_STEPS = 3


def tensors(seed: int) -> list[Tensor]:
    """Weights, or gradients of a step: the matrices', and the vector's at last."""
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(shape, generator=generator) for shape in (*SHAPES, VECTOR)]


def flat_slices(whole: Sequence[Tensor], rank: int, num_ranks: int) -> Tensor:
    """A rank's slices side by side, with zeros past the end of each tensor."""
    slices = []
    for tensor in whole:
        length = -(-tensor.numel() // num_ranks)
        padded = torch.zeros(length * num_ranks)
        padded[: tensor.numel()] = tensor.flatten()
        slices.append(padded[rank * length : (rank + 1) * length])
    return torch.cat(slices)


def steps(rank: int, num_ranks: int, port: int, dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
    """This rank's slices of matrices and vector after some steps, and its momenta."""
    from vlrl.trainer.optimizers.muon import MatrixSlice, MuonAdamW

    if distributed.is_initialized():
        distributed.destroy_process_group()
    distributed.init_process_group("gloo", f"tcp://127.0.0.1:{port}", rank=rank, world_size=num_ranks)
    *matrices, vector = tensors(0)
    flat, rest = (torch.nn.Parameter(flat_slices(part, rank, num_ranks)) for part in (matrices, [vector]))
    options = {"lr": RATE, "betas": (0.9, 0.95), "eps": 1e-8, "weight_decay": DECAY}
    optimizer = MuonAdamW([flat], [rest], MOMENTUM, **options)
    slices = [MatrixSlice(shape, -(-(shape[0] * shape[1]) // num_ranks)) for shape in SHAPES]
    optimizer.follow({flat: slices}, torch.device("cpu"))
    with patch("vlrl.trainer.optimizers.muon.newton_schulz_dtype", lambda _: dtype):
        for step in range(NUM_STEPS):
            *of_matrices, of_vector = tensors(step + 1)
            flat.grad = flat_slices(of_matrices, rank, num_ranks)
            rest.grad = flat_slices([of_vector], rank, num_ranks)
            optimizer.step()
    return flat.detach(), rest.detach(), optimizer.state[flat]["momentum_buffer"]
