"""vLLM's fused kernels compute on a CPU what its chains of torch operations do."""

from __future__ import annotations

from typing import Any

import pytest
import torch


def generated(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def norm_of(width: int, dtype: torch.dtype = torch.float32) -> Any:
    from vllm.config import VllmConfig, set_current_vllm_config
    from vllm.model_executor.layers.layernorm import RMSNorm

    from vlrl.engine.cpu.fused_layers import FusedRMSNorm

    with set_current_vllm_config(VllmConfig()):
        norm = RMSNorm(width, dtype=dtype)
    assert isinstance(norm, FusedRMSNorm)
    norm.weight.data.copy_(generated(width, seed=1))
    return norm


@pytest.mark.parametrize(("width", "dtype"), [(48, torch.float32), (7, torch.float32), (48, torch.bfloat16)])
def test_a_norm_is_vllms(width: int, dtype: torch.dtype) -> None:
    norm, x, residual = norm_of(width, dtype), generated(5, width).to(dtype), generated(5, width, seed=2)
    residual, tolerance = residual.to(dtype), 1e-5
    assert torch.allclose(norm.forward_cpu(x), norm.forward_native(x), atol=tolerance)
    expected = norm.forward_native(x.clone(), residual.clone())
    for found, wanted in zip(norm.forward_cpu(x, residual), expected, strict=True):
        assert torch.allclose(found, wanted, atol=tolerance)


def test_a_norm_of_columns_that_lie_apart_is_vllms() -> None:
    norm, x = norm_of(32), generated(5, 64)[:, ::2]
    assert torch.equal(norm.forward_cpu(x), norm.forward_native(x))


def rotary_of(*, interleaved: bool, rotary_dim: int) -> Any:
    from vllm.config import VllmConfig, set_current_vllm_config
    from vllm.model_executor.layers.rotary_embedding.mrope import MRotaryEmbedding

    from vlrl.engine.cpu.fused_layers import FusedMRotaryEmbedding

    half = rotary_dim // 2
    section = [half - 2 * (half // 3), half // 3, half // 3]
    with set_current_vllm_config(VllmConfig()):
        rotary = MRotaryEmbedding(
            32, rotary_dim, 64, 1e4, True, torch.float32, section, mrope_interleaved=interleaved
        )
    assert isinstance(rotary, FusedMRotaryEmbedding)
    return rotary


@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize("rotary_dim", [32, 16])
def test_a_rotation_is_vllms(monkeypatch: pytest.MonkeyPatch, interleaved: bool, rotary_dim: int) -> None:
    """Query and key are columns of one tensor, as in the model, and the next pass reuses the positions."""
    rotary, passes = rotary_of(interleaved=interleaved, rotary_dim=rotary_dim), list[object]()
    monkeypatch.setattr("vlrl.engine.cpu.fused_layers.get_forward_context", lambda: passes[-1])
    positions = torch.empty(3, 6, dtype=torch.int64)
    for seed in range(2):
        passes.append(object())
        positions.copy_(torch.randint(0, 60, (3, 6), generator=torch.Generator().manual_seed(seed)))
        for layer in range(2):
            query, key, _ = generated(6, 6 * 32, seed=layer).split([3 * 32, 2 * 32, 32], dim=-1)
            expected = rotary.forward_native(positions, query, key)
            for found, wanted in zip(rotary.forward_cpu(positions, query, key), expected, strict=True):
                assert torch.allclose(found, wanted, atol=1e-5)


def test_positions_of_text_alone_and_other_types_are_left_to_vllm() -> None:
    rotary = rotary_of(interleaved=False, rotary_dim=32)
    query, key = generated(4, 64), generated(4, 32, seed=1)
    for q, k, positions in (
        (query, key, torch.arange(4)),
        (query.bfloat16(), key.bfloat16(), torch.arange(4).expand(3, 4)),
    ):
        expected = rotary.forward_native(positions, q, k)
        found = rotary.forward_cpu(positions, q, k)
        assert torch.equal(found[0], expected[0]) and torch.equal(found[1], expected[1])
