"""The embedding of patches as one product, where transformers calls a convolution of one step.

The towers of the Qwen family and GLM's give their convolution patches of its kernel's own size, one after
the other. As a product it is the same sum, without the copies that a library of convolutions makes first.
"""

from __future__ import annotations

from types import MethodType
from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn


def install(model: nn.Module) -> None:
    """Let convolutions without overlap or padding multiply inputs of their kernel's size."""
    for module in model.modules():
        if type(module) in (nn.Conv2d, nn.Conv3d) and _takes_patches(module):
            module.forward = MethodType(_forward, module)


def _takes_patches(convolution: Any) -> bool:
    plain = convolution.groups == 1 and set(convolution.dilation) == {1}
    return plain and convolution.stride == convolution.kernel_size and set(convolution.padding) == {0}


def _forward(convolution: Any, patches: Tensor) -> Tensor:
    """[N, channels, *kernel] to [N, hidden, 1, …]; whole images go through the convolution."""
    if patches.shape[2:] != convolution.kernel_size:
        return type(convolution).forward(convolution, patches)  # type: ignore[no-any-return]
    embedded = F.linear(patches.flatten(1), convolution.weight.flatten(1), convolution.bias)
    return embedded.view(*embedded.shape, *(1 for _ in convolution.kernel_size))
