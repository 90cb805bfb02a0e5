"""Norms and mRoPE of an eager float32 engine on a CPU, by vLLM's own fused kernels.

On a CPU vLLM leaves fusing them to its compiler. An eager engine computes them as chains of small operations
of torch instead, and the cosines and sines of mRoPE again in every layer. Importing this file registers the
layers below with vLLM, which makes them in place of its own; compiled, it calls their `forward_native`.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from vllm._custom_ops import fused_add_rms_norm, rms_norm, rotary_embedding
from vllm.forward_context import get_forward_context
from vllm.model_executor.layers.layernorm import RMSNorm
from vllm.model_executor.layers.rotary_embedding.mrope import MRotaryEmbedding, apply_interleaved_rope

LANES = 16
"""Numbers that the kernel of norms takes at once; it refuses other widths."""


@RMSNorm.register_oot(name="RMSNorm")
class FusedRMSNorm(RMSNorm):  # type: ignore[misc]
    """RMSNorm in one pass over memory instead of five."""

    def forward_cpu(self, x: Tensor, residual: Tensor | None = None) -> Any:
        """RMSNorm of x; with a residual, of their sum, which is returned beside it: both are overwritten.

        Args:
            x: [..., hidden].
            residual: the same shape.
        """
        given = [x, self.weight] if residual is None else [x, self.weight, residual]
        usual = self.has_weight and self.variance_size_override is None and x.shape[-1] % LANES == 0
        if not usual or not all(t.dtype == torch.float32 and t.is_contiguous() for t in given):
            return self.forward_native(x, residual)
        if residual is None:
            out = torch.empty_like(x)
            rms_norm(out, x, self.weight.data, self.variance_epsilon)
            return out
        fused_add_rms_norm(x, residual, self.weight.data, self.variance_epsilon)
        return x, residual


@MRotaryEmbedding.register_oot(name="MRotaryEmbedding")
class FusedMRotaryEmbedding(MRotaryEmbedding):  # type: ignore[misc]
    """mRoPE in place, as vLLM's other rotary embeddings; its angles are found once a forward pass."""

    _last: tuple[Any, Tensor, tuple[Tensor, Tensor]] | None = None

    def forward_cpu(
        self, positions: Tensor, query: Tensor, key: Tensor | None = None, offsets: Tensor | None = None
    ) -> tuple[Tensor, Tensor | None]:
        """Rotate query and key.

        Args:
            positions: [3, num_tokens] with media, which this is for; else [num_tokens].
            query: [num_tokens, num_heads · head_size].
            key: likewise.
            offsets: vLLM's, which does not use them.
        """
        if positions.ndim == 1 or query.dtype != torch.float32 or key is None:
            return self.forward_native(positions, query, key, offsets)  # type: ignore[no-any-return]
        angles, numbers = self._angles(positions, query)
        rotary_embedding(numbers, query, key, self.head_size, angles, self.is_neox_style)
        return query, key

    def _angles(self, positions: Tensor, query: Tensor) -> tuple[Tensor, Tensor]:
        """Each token's cosines and sines, [num_tokens, rotary_dim], and 0 … num_tokens - 1.

        Layers of a pass share one rotary embedding and one tensor of positions. The runner writes the next
        pass's positions into the same memory, so it is the pass that says whether they are new.
        """
        context = get_forward_context()
        if self._last is not None and self._last[0] is context and self._last[1] is positions:
            return self._last[2]
        cos, sin = self._match_cos_sin_cache_dtype(query)[positions].chunk(2, dim=-1)
        angles = torch.cat((self._by_axis(cos), self._by_axis(sin)), dim=-1)
        found = angles, torch.arange(positions.shape[-1], device=positions.device)
        self._last = context, positions, found
        return found

    def _by_axis(self, values: Tensor) -> Tensor:
        """Each frequency's number of its axis (time, height, width), of [3, num_tokens, rotary_dim / 2]."""
        if self.mrope_interleaved:
            return apply_interleaved_rope(values, self.mrope_section)  # type: ignore[no-any-return]
        parts = torch.split(values, self.mrope_section, dim=-1)
        return torch.cat([part[axis] for axis, part in enumerate(parts)], dim=-1)
