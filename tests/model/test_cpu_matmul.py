"""Who multiplies float32 matrices on a CPU: never at the cost of their precision."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from vlrl.model import cpu_matmul
from vlrl.model.cpu_matmul import LARGE_BLOCKS_FROM, allow_onednn, choose_products, products_of_attention
from vlrl.model.kernels.nodes import attend_within

AMD = {"cpu_name": "AMD EPYC", "avx512_bw": True}


@pytest.fixture(autouse=True)
def _setting_kept() -> Iterator[None]:
    before = torch.get_float32_matmul_precision()
    yield
    torch.set_float32_matmul_precision(before)


def exactness(rows: int, width: int, columns: int) -> float:
    """Largest relative error of a linear layer's three products."""
    generator = torch.Generator().manual_seed(rows)
    x, weight, grad = (
        torch.randn(*shape, generator=generator)
        for shape in ((rows, width), (columns, width), (rows, columns))
    )
    weight.requires_grad_()
    x.requires_grad_()
    found = [y := F.linear(x, weight), *torch.autograd.grad(y, (x, weight), grad)]
    wide = [t.detach().double().requires_grad_() for t in (x, weight)]
    exact = [z := F.linear(*wide), *torch.autograd.grad(z, wide, grad.double())]
    return max(float((a - b).abs().max() / b.abs().max()) for a, b in zip(found, exact, strict=True))


@pytest.mark.parametrize(
    "processor",
    [{"cpu_name": "Intel Xeon", "avx512_bw": True}, {"cpu_name": "AMD Zen 3", "avx512_bw": False}],
)
def test_processors_that_mkl_uses_whole_keep_the_default(processor: dict[str, object]) -> None:
    """Intel's, and those that have no AVX-512 to leave unused: torch would not ask oneDNN there."""
    choice = choose_products(processor)
    assert (choice.used, choice.reason, choice.is_slower) == ("torch's default", processor["cpu_name"], False)
    assert torch.get_float32_matmul_precision() == "highest"


@pytest.mark.parametrize("shape", [(1, 64, 64), (7, 384, 1152), (560, 1152, 384), (2048, 128, 256)])
def test_products_are_as_exact_as_float32_whatever_is_chosen(shape: tuple[int, int, int]) -> None:
    """The default has to stay on a processor with bfloat16 tiles, where oneDNN would use them."""
    choose_products(AMD)
    assert exactness(*shape) < cpu_matmul.MOST_ERROR


def test_what_is_not_exact_enough_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu_matmul, "largest_error", lambda: 2e-3)
    choice = choose_products(AMD)
    assert "oneDNN is not as exact on AMD EPYC: relative error 2e-03" in choice.reason
    assert (choice.wanted, choice.used) == ("oneDNN", "torch's default") and choice.cost
    assert torch.get_float32_matmul_precision() == "highest"


def test_exact_enough_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu_matmul, "largest_error", lambda: 1e-6)
    choice = choose_products(AMD)
    assert (choice.used, choice.is_slower) == ("oneDNN", False)
    assert torch.get_float32_matmul_precision() == "medium"


def test_the_error_tells_half_precision_from_single() -> None:
    """largest_error is a check that can fail: products of rounded factors are far beyond it."""
    allow_onednn(False)
    exact = cpu_matmul.largest_error()
    original = torch.Tensor.__matmul__
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            torch.Tensor,
            "__matmul__",
            lambda a, b: original(a, b) if a.dtype == torch.float64 else original(a.bfloat16(), b.bfloat16()),
        )
        rounded = cpu_matmul.largest_error()
    assert exact < cpu_matmul.MOST_ERROR / 3 < 30 * cpu_matmul.MOST_ERROR < rounded


@pytest.mark.parametrize(("num_queries", "within"), [(1, "highest"), (LARGE_BLOCKS_FROM, "medium")])
def test_small_blocks_of_attention_are_left_to_mkl(num_queries: int, within: str) -> None:
    allow_onednn(True)
    with pytest.raises(RuntimeError, match="out of memory"), products_of_attention(num_queries):
        assert torch.get_float32_matmul_precision() == within
        raise RuntimeError("out of memory")
    assert torch.get_float32_matmul_precision() == "medium"


def test_attention_leaves_torchs_default_alone() -> None:
    allow_onednn(False)
    with products_of_attention(1):
        assert torch.get_float32_matmul_precision() == "highest"
    assert torch.get_float32_matmul_precision() == "highest"


def test_small_parts_are_left_to_mkl_in_both_passes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What the kernels find set, for two windows."""
    seen: dict[int, set[str]] = {}

    def watch(name: str) -> None:
        kernel = getattr(torch.ops.aten, name)

        def watched(*tensors: Any, **options: Any) -> Any:
            query = tensors[1] if "backward" in name else tensors[0]
            seen.setdefault(query.shape[2], set()).add(f"{name[-8:]} {torch.get_float32_matmul_precision()}")
            return kernel(*tensors, **options)

        monkeypatch.setattr(torch.ops.aten, name, watched)

    watch("_scaled_dot_product_flash_attention_for_cpu")
    watch("_scaled_dot_product_flash_attention_for_cpu_backward")
    allow_onednn(True)
    sizes = (64, LARGE_BLOCKS_FROM)
    q, k, v = (torch.randn(1, 1, sum(sizes), 8, requires_grad=True) for _ in range(3))
    attend_within(q, k, v, [(0, sizes[0]), (sizes[0], sum(sizes))], 1.0).sum().backward()
    assert seen == {
        sizes[0]: {"_for_cpu highest", "backward highest"},
        sizes[1]: {"_for_cpu medium", "backward medium"},
    }
