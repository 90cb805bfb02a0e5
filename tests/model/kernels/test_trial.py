"""A trial lets a right kernel pass in every dtype, and names what is wrong with another."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from vlrl.model.kernels.trial import HeadShape, failure_of

CPU = torch.device("cpu")
HEADS = HeadShape(4, 4, 128, torch.float32)


def causal(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    return F.scaled_dot_product_attention(query, key, value, is_causal=True)


def one_key_more(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    size = query.shape[2]
    mask = torch.ones(size, size, dtype=torch.bool).tril(1)
    return F.scaled_dot_product_attention(query, key, value, attn_mask=mask)


def without_the_keys_gradient(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    return causal(query, key.detach(), value) + 0.0 * key.sum()


def no_numbers(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    return causal(query, key, value) * torch.nan


def broken(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    raise RuntimeError("Failed to find C compiler.\n  Please specify via CC")


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_rounding_passes_and_a_wrong_mask_does_not(dtype: torch.dtype) -> None:
    heads = HeadShape(4, 4, 128, dtype)
    assert failure_of(causal, causal, heads, 350, CPU) == ""
    assert "it differs from plain attention by" in failure_of(one_key_more, causal, heads, 350, CPU)


def test_gradients_count() -> None:
    assert failure_of(without_the_keys_gradient, causal, HEADS, 60, CPU).startswith("it differs")


def test_nan_is_a_difference() -> None:
    assert "by inf" in failure_of(no_numbers, causal, HEADS, 60, CPU)


def test_an_error_is_one_line_with_its_class() -> None:
    found = failure_of(broken, causal, HEADS, 60, CPU)
    assert found == "RuntimeError: Failed to find C compiler. Please specify via CC"


def test_a_trial_leaves_the_process_s_random_state_alone() -> None:
    before = torch.get_rng_state()
    failure_of(causal, causal, HEADS, 60, CPU)
    assert torch.equal(torch.get_rng_state(), before)
