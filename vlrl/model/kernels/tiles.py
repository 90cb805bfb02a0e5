"""The projector of MiniCPM-V called once for all tiles, which transformers calls once for each.

Under ZeRO-3 every call of a module with weights is one that all ranks have to make, and every tensor that a
module returns is one that all ranks have to return. Ranks have different numbers of tiles.
"""

from __future__ import annotations

from types import MethodType
from typing import Any

import torch
from torch import Tensor


def install(model: Any) -> None:
    """Let projectors that go from tile to tile take all of them at once."""
    for module in model.modules():
        if type(module).__name__ == "MiniCPMV4_6Merger":
            module.forward = MethodType(_forward, module)
        elif type(module).__name__ == "MiniCPMV4_6Model":
            module.get_image_features = MethodType(_features, module)


def _features(core: Any, pixel_values: Tensor, target_sizes: Tensor, **options: Any) -> Any:
    """What MiniCPMV4_6Model returns; the projector's output is split here, outside of it."""
    output = type(core).get_image_features(core, pixel_values, target_sizes, **options)
    num_patches = target_sizes.prod(1)
    patches_per_token = int(num_patches.sum()) // len(output.pooler_output)
    output.pooler_output = torch.split(output.pooler_output, (num_patches // patches_per_token).tolist())
    return output


def _forward(merger: Any, hidden_states: Tensor, target_sizes: Tensor) -> Tensor:
    """Features [tokens, hidden] of all tiles, one after the other, from their patches [1, T, width]."""
    high, wide = merger.merge_kernel_size
    merged, sizes = hidden_states[0], target_sizes.tolist()
    for mlp in merger.mlp:
        order = torch.cat(_blocks(sizes, high, wide)).to(merged.device)
        merged = mlp(merged[order].reshape(len(order) // (high * wide), -1))
        sizes = [(rows // high, columns // wide) for rows, columns in sizes]
    return merged


def _blocks(sizes: list[tuple[int, int]], high: int, wide: int) -> list[Tensor]:
    """Each tile's indices of patches, those that become one side by side."""
    found, start = [], 0
    for rows, columns in sizes:
        cells = torch.arange(start, start + rows * columns).view(rows // high, high, columns // wide, wide)
        found.append(cells.permute(0, 2, 1, 3).flatten())
        start += rows * columns
    return found
