"""A patch of vLLM: the gated delta rule in float32 on a CPU, where its own kernels take bfloat16 alone.

Models are small where a CPU generates, and compared in float32: the same recurrence as the trainer's, by
transformers' functions, on the states that vLLM keeps for each request.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import signature
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor


def compute_float32() -> None:
    """Have vLLM compute float32 models as well; those of bfloat16 stay with its kernels."""
    from vllm.forward_context import get_forward_context
    from vllm.model_executor.layers.mamba.ops.cpu import gdn_attention
    from vllm.utils.torch_utils import _resolve_layer_name

    own = gdn_attention.cpu_gdn_attention_core
    if hasattr(own, "__signature__"):  # replaced for an engine of this process before
        return

    def core(mixed_qkv: Tensor, b: Tensor, a: Tensor, core_attn_out: Tensor, layer_name: Any) -> None:
        context = get_forward_context()
        if mixed_qkv.dtype != torch.float32 or context.attn_metadata is None:
            own(mixed_qkv, b, a, core_attn_out, layer_name)
            return
        layer = context.no_compile_layers[_resolve_layer_name(layer_name)]
        _Requests(layer, context.attn_metadata[layer.prefix]).compute(mixed_qkv, b, a, core_attn_out)

    # vLLM reads the operator's schema from it: types, where the function itself has their names.
    core.__signature__ = signature(own, eval_str=True)  # type: ignore[attr-defined]
    gdn_attention.cpu_gdn_attention_core = core


class _Requests:
    """The requests of one step in one layer: those that decode, a token each, then those with a prompt."""

    def __init__(self, layer: Any, metadata: Any) -> None:
        """Look at the layer's caches.

        Args:
            layer: vLLM's.
            metadata: which tokens and which slots of the caches are of which request.
        """
        from vllm.model_executor.layers.mamba.mamba_utils import is_conv_state_dim_first

        self._layer, self._metadata = layer, metadata
        before, states = layer.kv_cache
        # [num_slots, channels, width - 1] inputs before the next token, [num_slots, heads, key, value]
        self._before = before if is_conv_state_dim_first() else before.transpose(-1, -2)
        slots, heads, value_size, key_size = states.shape
        self._states = states.view(slots, heads, key_size, value_size)

    def compute(self, mixed: Tensor, b: Tensor, a: Tensor, out: Tensor) -> None:
        """Write the outputs of all tokens, and what the next tokens need into the caches.

        Args:
            mixed: [num_tokens, channels] of query, key and value before the convolution.
            b: [num_tokens, heads] before the sigmoid.
            a: [num_tokens, heads], of the decay.
            out: [num_tokens, heads, value] to be written.
        """
        found = self._metadata
        slots = found.non_spec_state_indices_tensor.long()
        starts = found.non_spec_query_start_loc.tolist()
        if count := found.num_decodes:
            which = slots[:count]
            rows = slice(0, count)
            out[rows] = self._one_each(which, mixed[rows], b[rows], a[rows])
        for number in range(found.num_decodes, found.num_decodes + found.num_prefills):
            rows, slot = slice(starts[number], starts[number + 1]), slots[number]
            if not found.has_initial_state[number]:
                self._before[slot], self._states[slot] = 0, 0
            out[rows] = self._read(slot[None], mixed[rows], b[rows], a[rows])

    def _one_each(self, slots: Tensor, mixed: Tensor, b: Tensor, a: Tensor) -> Tensor:
        from transformers.models.qwen3_5.modeling_qwen3_5 import torch_recurrent_gated_delta_rule as rule

        heads = self._heads(self._convolved(slots, mixed[:, :, None])[..., 0])
        return self._step(rule, slots, [x.transpose(0, 1) for x in heads], b[:, None], a[:, None])[:, 0]

    def _read(self, slot: Tensor, mixed: Tensor, b: Tensor, a: Tensor) -> Tensor:
        from transformers.models.qwen3_5.modeling_qwen3_5 import torch_chunk_gated_delta_rule as rule

        heads = self._heads(self._convolved(slot, mixed.T[None])[0].T)
        return self._step(rule, slot, heads, b[None], a[None])[0]

    def _convolved(self, slots: Tensor, mixed: Tensor) -> Tensor:
        """[num_requests, channels, num_tokens] of the short causal convolution."""
        conv = self._layer.conv1d
        inputs = torch.cat([self._before[slots], mixed], dim=2)
        self._before[slots] = inputs[:, :, 1 - conv.weight.shape[-1] :]
        weight = conv.weight.view(conv.weight.shape[0], 1, -1)
        return F.silu(F.conv1d(inputs, weight, conv.bias, groups=len(weight)))

    def _heads(self, convolved: Tensor) -> list[Tensor]:
        """Query, key and value [1, num_tokens, heads, width], as many heads of each."""
        query, key, value = self._layer.rearrange_mixed_qkv(convolved.contiguous())
        repeats = value.shape[2] // query.shape[2]
        return [query.repeat_interleave(repeats, dim=2), key.repeat_interleave(repeats, dim=2), value]

    def _step(
        self, rule: Callable[..., Any], slots: Tensor, heads: Sequence[Tensor], b: Tensor, a: Tensor
    ) -> Tensor:
        """Outputs [num_requests, num_tokens, heads, value] of a recurrence that goes on from the slots."""
        layer = self._layer
        output, states = rule(
            *heads,
            g=-layer.A_log.float().exp() * F.softplus(a.float() + layer.dt_bias),
            beta=b.sigmoid(),
            initial_state=self._states[slots],
            output_final_state=True,
            use_qk_l2norm_in_kernel=True,
        )
        self._states[slots] = states.to(self._states.dtype)
        found: Tensor = output
        return found
