"""Values that autograd saves in the layers of a stack, counted as transformers computes them."""

from __future__ import annotations

from vlrl.plan.shapes import Stack

FLOAT32 = 4
DELTA_CHUNK = 64
"""Tokens that transformers' gated delta rule reads at once."""


def layer_values(stack: Stack) -> int:
    """Values a token that autograd saves in one layer, keys and values aside.

    Each norm, mostly two: its input, the normalised input and its output (3 · hidden), and so for queries and
    keys where they are normalised; queries, the attention's output and that output made contiguous
    (3 · heads); of the MLP the inner products (gate, up, activation, their product: 4 · inner; without gate
    2); a token's copy for each of its experts, and that expert's answer (2 · experts · hidden).
    """
    of_heads = stack.heads + stack.key_heads if stack.norms_heads else 0
    return 3 * (stack.num_norms * stack.hidden + of_heads + stack.heads) + _mlp_values(stack)


def _mlp_values(stack: Stack) -> int:
    return (4 if stack.num_gates == 3 else 2) * stack.inner + 2 * stack.num_experts * stack.hidden


def state_layer_bytes(stack: Stack, size: int) -> int:
    """Bytes a token that autograd saves in one layer with a state.

    The norms and the MLP as in a layer that attends, and of every channel its value before and after the
    convolution. transformers' own delta rule is computed in float32, in chunks of 64: five products of a
    chunk with itself, 21 arrays as large as the values, and the state at each chunk's end.
    """
    assert stack.recurrence is not None
    rule = stack.recurrence
    values = 3 * stack.num_norms * stack.hidden + 2 * rule.channels + _mlp_values(stack)
    of_rule = rule.num_heads * (5 * DELTA_CHUNK + 21 * rule.value + rule.key * rule.value // DELTA_CHUNK)
    return values * size + of_rule * FLOAT32


def key_values(stack: Stack, num_keys: int, *, repeated: bool) -> int:
    """Values that autograd saves in one layer of keys and values.

    Args:
        stack: the layers.
        num_keys: of all blocks of queries together; tokens where there is one block.
        repeated: for every query head, where a kernel knows no groups.
    """
    return 2 * (stack.heads if repeated else stack.key_heads) * num_keys


def stack_bytes(stack: Stack, num_tokens: int, keys: int, size: int, checkpointed: bool) -> int:
    """Bytes that autograd saves in a stack; `keys` are `key_values`, `size` is the bytes of a value."""
    attending = (layer_values(stack) * num_tokens + keys) * size
    carrying = state_layer_bytes(stack, size) * num_tokens if stack.recurrence else 0
    if not checkpointed:
        return stack.num_attending * attending + (stack.num_layers - stack.num_attending) * carrying
    inputs = stack.num_layers * stack.hidden * num_tokens * size
    return inputs + max(attending, carrying)  # one layer is made again
