"""The same numbers give the same bits, however busy the machine is (law 8)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from builders import make_group, open_tiny, random_image, row
from busy import busy_machine

from vlrl.algorithm.off_policy import Surrogate, sequence_sums
from vlrl.algorithm.ordered import ordered, rows_of, sums_by
from vlrl.algorithm.staleness import COLUMNS, staleness_sums
from vlrl.batch import MicroBatch
from vlrl.errors import EngineError
from vlrl.model.logprobs import DeviceBatch, TreeLogprobs
from vlrl.packing.options import PackOptions
from vlrl.packing.pack import pack

CPU = torch.device("cpu")
PARALLEL = 32_768
"""Elements from which torch shares an operation among threads."""


@pytest.fixture
def busy() -> Iterator[None]:
    with busy_machine():
        yield


def large_batch(processor: Any) -> MicroBatch:
    """Three groups of eight: threads share the work within a group, whose members begin at one token."""
    groups = [
        make_group(
            [24] * 8,
            sample=processor.sample(row("Add." * (i + 1), [random_image(56, 56, seed=i)], row_id=f"g{i}")),
            advantages=np.random.default_rng(i).normal(size=8),  # type: ignore[arg-type]
            seed=i,
        )
        for i in range(3)
    ]
    [[batch]] = pack(
        groups,
        processor.pixels,
        PackOptions(
            num_ranks=1,
            max_tokens=4096,
            aggregation="token",
            max_completion_tokens=32,
            keep_zero_advantage=True,
        ),
    )
    return batch


@pytest.fixture
def two_threads() -> Iterator[None]:
    """Two at least: one adds in one order."""
    threads = torch.get_num_threads()
    torch.set_num_threads(max(2, threads))
    yield
    torch.set_num_threads(threads)


def test_a_batch_stepped_again_gives_the_same_gradients_on_a_busy_machine(
    tiny_model: Path, busy: None, two_threads: None
) -> None:
    """Every parameter's, bit for bit. Plain indexing differed in 146 of 149 passes."""
    from transformers import AutoModelForImageTextToText

    processor = open_tiny(tiny_model)
    model = AutoModelForImageTextToText.from_pretrained(tiny_model, attn_implementation="sdpa")
    wrapped = TreeLogprobs(model, temperature=1.0, banned_token_ids=processor.banned_token_ids)
    micro_batch = large_batch(processor)
    width = int(model.config.text_config.hidden_size)
    assert micro_batch.source_index.size * width >= PARALLEL
    expected: dict[str, torch.Tensor] = {}
    for _ in range(10):
        batch = DeviceBatch.of(micro_batch, CPU)
        logprobs, entropy = wrapped(batch)
        ((logprobs * batch.advantages - 0.01 * entropy) * batch.weights).sum().backward()
        found = {n: p.grad for n, p in model.named_parameters() if p.grad is not None}
        assert len(found) > 50
        expected = expected or found
        assert not [name for name, gradient in found.items() if not torch.equal(gradient, expected[name])]
        model.zero_grad(set_to_none=True)


def test_rows_are_those_of_an_index_and_so_are_their_gradients() -> None:
    table = torch.randn(50, 7, dtype=torch.float64, requires_grad=True)
    index = torch.randint(0, 50, (200,))
    weights = torch.randn(200, 7, dtype=torch.float64)
    assert torch.equal(rows_of(table, index), table[index])
    [found] = torch.autograd.grad((rows_of(table, index) * weights).sum(), table)
    expected = torch.zeros_like(table).index_add(0, index, weights)
    assert torch.allclose(found, expected)
    [nothing] = torch.autograd.grad(rows_of(table, index[:0]).sum(), table)
    assert not nothing.any()


def test_sums_by_an_index_add_in_the_order_of_the_values() -> None:
    """The order shows in float32: 1e8 + 1 - 1e8 is 0, and 1e8 - 1e8 + 1 is 1."""
    values = torch.tensor([1e8, 5.0, 1.0, -1e8, 1e8, -1e8, 1.0])
    index = torch.tensor([0, 3, 0, 0, 2, 2, 2])
    assert sums_by(index, values, 5).tolist() == [0.0, 0.0, 1.0, 5.0, 0.0]
    columns = torch.stack([values, -values], dim=1)
    assert sums_by(index, columns, 5).tolist() == [[0, 0], [0, 0], [1, -1], [5, -5], [0, 0]]
    assert sums_by(index[:0], values[:0], 2).tolist() == [0.0, 0.0]


def test_no_sum_of_the_loss_is_added_up_by_whoever_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """`index_add` and `scatter_add` are ordered on a CPU and not on CUDA, so a run here cannot show it."""

    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise AssertionError("unordered on CUDA")

    for name in ("index_add", "index_add_", "scatter_add", "scatter_add_", "index_put_"):
        monkeypatch.setattr(torch.Tensor, name, refuse)
    values, ids = torch.randn(40), torch.arange(40) // 7
    expected = torch.tensor([values[ids == i].sum() for i in ids])
    assert torch.allclose(sequence_sums(values, ids), expected)
    nothing = torch.zeros(40, dtype=torch.bool)
    sums = staleness_sums(values, values, ids, Surrogate(values, nothing, nothing))
    assert sums[:, COLUMNS.index("tokens")].tolist() == [7, 7, 7, 7, 7, 5, 0, 0, 0]


def test_an_operation_without_an_ordered_algorithm_is_named_with_the_remedy() -> None:
    words = (
        "upsample_bicubic2d_backward_out_cuda does not have a deterministic implementation, but you set "
        "'torch.use_deterministic_algorithms(True)'. You can turn off determinism"
    )
    with pytest.raises(EngineError, match=r"upsample_bicubic2d.*trainer.deterministic=false"), ordered():
        raise RuntimeError(words)
    with pytest.raises(RuntimeError, match="another"), ordered():
        raise RuntimeError("another")
