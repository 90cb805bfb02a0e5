"""Frozen linear layers in 4 bits below adapters (QLoRA, arXiv 2305.14314): bitsandbytes' NF4, blocks of 64.

The bits lie in tensors of the model's dtype, which nobody computes with: so ZeRO-3 slices, gathers and moves
them like other weights. The trained model is the one with the rounded base. Engines and saved models get it,
and not what model.path has: the merged weights are those that the layers multiply with.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from vlrl.errors import ConfigError

BLOCK = 64
"""Weights that share a scale, the largest of their absolute values."""
FLOAT32_BYTES = 4
BYTES_PER_WEIGHT = 1 / 2 + FLOAT32_BYTES / BLOCK


class Nf4Linear(nn.Linear):
    """A linear layer whose weight [out, in] is frozen in 4 bits; `weight` and `scales` hold bits alone."""

    def __init__(self, weight: Tensor, bias: nn.Parameter | None) -> None:
        """Round a weight [out, in], of the dtype in which the layer will multiply."""
        nn.Module.__init__(self)
        from bitsandbytes.functional import quantize_4bit

        self.out_features, self.in_features = weight.shape
        bits, state = quantize_4bit(weight.contiguous(), blocksize=BLOCK, quant_type="nf4")
        self.weight = _of_bits(bits, weight.dtype)
        self.scales = _of_bits(state.absmax, weight.dtype)
        self.weight.whole_shape = tuple(weight.shape)  # type: ignore[attr-defined]  # see `whole_shape`
        self.register_parameter("bias", bias)

    def forward(self, input: Tensor) -> Tensor:  # torch's name for it
        """[..., in] → [..., out]; only the bits are kept for the backward pass."""
        found: Tensor = _Product.apply(input, self.weight, self.scales, self)  # type: ignore[no-untyped-call]
        return found if self.bias is None else found + self.bias

    def rounded(self, bits: Tensor, scales: Tensor) -> Tensor:
        """The weight [out, in] from whole `weight` and `scales`, in their dtype."""
        from bitsandbytes.functional import QuantState, dequantize_4bit, get_4bit_type

        state = QuantState(
            scales.detach().view(torch.float32),
            shape=torch.Size((self.out_features, self.in_features)),
            dtype=bits.dtype,
            blocksize=BLOCK,
            quant_type="nf4",
            code=get_4bit_type("nf4", device=bits.device),
        )
        num_bytes = -(-self.out_features * self.in_features // 2)  # past these there is padding
        found: Tensor = dequantize_4bit(bits.detach().view(torch.uint8)[:num_bytes, None], state)
        return found


class _Product(torch.autograd.Function):
    """x·Wᵀ, for whose backward pass W is made again out of its bits."""

    @staticmethod
    def forward(ctx: Any, given: Tensor, bits: Tensor, scales: Tensor, layer: Nf4Linear) -> Tensor:
        # Of a parameter autograd keeps the parameter: ZeRO-3 has its bits back when the backward pass begins.
        ctx.save_for_backward(bits, scales)
        ctx.layer = layer
        return given @ layer.rounded(bits, scales).T

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None, None]:
        bits, scales = ctx.saved_tensors
        return gradients[0] @ ctx.layer.rounded(bits, scales), None, None, None


def round_layers(model: nn.Module, names: Sequence[str]) -> None:
    """Put 4-bit layers in the place of linear ones, one after the other; every rank must call it.

    A weight of which ZeRO-3 has left a slice is gathered for it, and each rank gets its slice of the bits
    (`vlrl.trainer.loading`).

    Args:
        model: of transformers.
        names: of linear layers.

    Raises:
        ConfigError: if bitsandbytes is not installed.
    """
    import deepspeed

    try:
        import bitsandbytes  # noqa: F401
    except ImportError as error:
        raise ConfigError(
            "lora.base=nf4 needs bitsandbytes: pip install 'vlrl[8bit]', or set lora.base=dtype"
        ) from error
    for name in names:
        layer: Any = model.get_submodule(name)
        parent, _, own = name.rpartition(".")
        with deepspeed.zero.GatheredParameters([layer.weight]):
            rounded = Nf4Linear(layer.weight.detach(), layer.bias)
        setattr(model.get_submodule(parent), own, rounded)


def whole_shape(parameter: Any) -> tuple[int, ...]:
    """Shape of the weight that a parameter split by ZeRO-3 stands for, in 4 bits or not."""
    return tuple(getattr(parameter, "whole_shape", parameter.ds_shape))


def gathered_slice(layer: Nf4Linear) -> Tensor:
    """This rank's flat slice of a 4-bit layer's weight, as ZeRO-3 would cut it; every rank must call it."""
    import deepspeed

    rank, num_ranks = torch.distributed.get_rank(), torch.distributed.get_world_size()
    with deepspeed.zero.GatheredParameters([layer.weight, layer.scales]):
        whole = layer.rounded(layer.weight, layer.scales).flatten()
    length = -(-whole.numel() // num_ranks)
    found = whole.new_zeros(length)
    part = whole[rank * length : (rank + 1) * length]
    found[: len(part)] = part
    return found


def _of_bits(bits: Tensor, dtype: torch.dtype) -> nn.Parameter:
    """A frozen parameter of these bits, which `vlrl.trainer.loading` takes for loaded, and splits."""
    flat = bits.flatten().view(torch.uint8)
    padded = torch.nn.functional.pad(flat, (0, -flat.numel() % dtype.itemsize))
    parameter = nn.Parameter(padded.view(dtype), requires_grad=False)
    parameter._is_hf_initialized = True  # type: ignore[attr-defined]
    return parameter
