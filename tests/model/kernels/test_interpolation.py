"""A square of embeddings read between its cells: torch's grid_sample, and a gradient that needs no order."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from vlrl.model.kernels.interpolation import interpolated


def sampled(table: Tensor, height: Tensor, width: Tensor) -> Tensor:
    """What transformers' GLM computes."""
    side = round(len(table) ** 0.5)
    square = table.view(side, side, -1).permute(2, 0, 1)[None]
    grid = torch.stack((width * 2 - 1, height * 2 - 1), dim=-1)[None, :, None]
    found = F.grid_sample(square, grid, mode="bicubic", align_corners=False, padding_mode="border")
    return found[0, :, :, 0].T


@pytest.mark.parametrize("shape", [(24, 24), (7, 50), (61, 3), (1, 1)])
def test_values_and_gradients_are_those_of_grid_sample(shape: tuple[int, int]) -> None:
    """An image of the square's own shape, of others, and of one patch."""
    generator = torch.Generator().manual_seed(0)
    table = torch.randn(24 * 24, 8, generator=generator, requires_grad=True)
    rows, columns = torch.meshgrid(*(torch.arange(size) for size in shape), indexing="ij")
    places = (rows.flatten() + 0.5) / shape[0], (columns.flatten() + 0.5) / shape[1]
    signs = torch.randn(len(places[0]), 8, generator=generator)
    values, gradients = [], []
    for read in (interpolated, sampled):
        found = read(table, *places)
        values.append(found.detach())
        gradients.append(torch.autograd.grad((found * signs).sum(), table)[0])
    assert torch.allclose(*values, atol=1e-5)
    assert torch.allclose(*gradients, atol=1e-4)


def test_an_image_of_the_square_s_own_shape_has_its_embeddings() -> None:
    table = torch.randn(25, 4, generator=torch.Generator().manual_seed(0))
    rows, columns = torch.meshgrid(torch.arange(5), torch.arange(5), indexing="ij")
    found = interpolated(table, (rows.flatten() + 0.5) / 5, (columns.flatten() + 0.5) / 5)
    assert torch.allclose(found, table, atol=1e-5)
