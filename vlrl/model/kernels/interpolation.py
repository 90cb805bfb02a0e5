"""Position embeddings of an image of any shape by one product: CUDA sums the gradient in a fixed order.

GLM's tower reads its square of embeddings by `grid_sample`, whose gradient on CUDA is a sum by atomic
additions: torch refuses it with trainer.deterministic.
"""

from __future__ import annotations

from types import MethodType
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

SHARPNESS = -0.75
"""The parameter a of the cubic kernel (Keys 1981, eq. 4); torch's."""


def install(model: Any) -> None:
    """Let towers that interpolate by `grid_sample` do so by `interpolated`."""
    for module in model.modules():
        if getattr(module, "interpolated_method", None) == "bicubic":
            module.forward = MethodType(_forward, module)


def _forward(
    embeddings: Any, hidden: Tensor, lengths: Any, shapes: Tensor, rows: Tensor, columns: Tensor
) -> Tensor:
    """Patches [T, hidden] with their embeddings added, as Glm4vVisionEmbeddings.forward returns them."""
    lengths = torch.as_tensor(lengths, device=hidden.device)
    frames = shapes.repeat_interleave(shapes[:, 0], dim=0)  # of a video each has a length of its own
    sizes = frames.repeat_interleave(lengths, dim=0, output_size=len(hidden))
    table = embeddings.position_embedding.weight
    found = interpolated(table.float(), (rows + 0.5) / sizes[:, 1], (columns + 0.5) / sizes[:, 2])
    return hidden + found.to(table.dtype)


def interpolated(table: Tensor, height: Tensor, width: Tensor) -> Tensor:
    """Embeddings at places within a square of them, bicubic; beyond its edges those at the edge.

    Args:
        table: [side², hidden] float32, row by row.
        height: [T] place of each, 0 to 1 from the upper edge to the lower one.
        width: the same from left to right.

    Returns:
        [T, hidden].
    """
    side = round(len(table) ** 0.5)
    weights = _taps(height, side)[:, :, None] * _taps(width, side)[:, None]
    return weights.flatten(1) @ table


def _taps(place: Tensor, side: int) -> Tensor:
    """[T, side] weights of the cells of one axis; four of them are not 0."""
    at = place.float() * side - 0.5
    first, a = at.floor(), SHARPNESS
    t = (at - first)[:, None]
    near, far = torch.cat([t, 1 - t], dim=1), torch.cat([1 + t, 2 - t], dim=1)
    inner = ((a + 2) * near - (a + 3)) * near * near + 1
    outer = ((a * far - 5 * a) * far + 8 * a) * far - 4 * a
    weights = torch.stack([outer[:, 0], inner[:, 0], inner[:, 1], outer[:, 1]], dim=1)
    cells = (first[:, None] + torch.arange(-1, 3, device=at.device)).clamp(0, side - 1).long()
    return (F.one_hot(cells, side) * weights[:, :, None]).sum(1)
