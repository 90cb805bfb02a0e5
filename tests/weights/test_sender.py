"""Slices of any number of ranks, gathered in buckets, are the parameters again: real gathers.

A buffer is whole on every rank, and rank 0's is sent.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import distributed, multiprocessing

from vlrl.process.network import rendezvous_port
from vlrl.weights import sender as sender_module
from vlrl.weights.manifest import Manifest, bucket_file, buckets_of, plan_segment
from vlrl.weights.sender import WeightSender

LAYOUT = [
    ("a", "float32", (5, 7)),
    ("b", "bfloat16", (3,)),
    ("c", "float32", (1,)),
    ("d", "bfloat16", (9, 11)),
    ("buffer", "float32", (4,)),
]


def parameters() -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    return {n: torch.randn(shape, generator=generator).to(getattr(torch, d)) for n, d, shape in LAYOUT}


def manifest_at(folder: Path, bucket_bytes: int) -> Manifest:
    base = plan_segment(folder, LAYOUT)
    return Manifest(base.path, base.entries, base.num_bytes, "disk", bucket_bytes, checked=True)


def watch(sender: WeightSender) -> list[str]:
    """A log of the order in which buckets are begun to be gathered, and written."""
    order: list[str] = []
    begin, write = sender._begin_gather, sender_module._write_file

    def gather(*arguments: Any, **options: Any) -> Any:
        order.append("gather")
        return begin(*arguments, **options)

    def write_file(*arguments: Any) -> Any:
        order.append("write")
        return write(*arguments)

    sender._begin_gather = gather  # type: ignore[method-assign]
    sender_module._write_file = write_file
    return order


def rank_main(rank: int, num_ranks: int, port: int, folder: Path, bucket_bytes: int) -> None:
    if num_ranks > 1:
        distributed.init_process_group(
            "gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=num_ranks
        )
    slices = []
    for name, whole in parameters().items():  # as ZeRO-3 cuts: equal parts, the last one padded
        if name == "buffer":
            slices.append((name, whole if rank == 0 else torch.full_like(whole, 9.0)))
            continue
        size = -(-whole.numel() // num_ranks)
        padded = torch.full((size * num_ranks,), 9.0, dtype=whole.dtype)
        padded[: whole.numel()] = whole.flatten()
        slices.append((name, padded[rank * size : (rank + 1) * size]))
    sender = WeightSender(rank, num_ranks, torch.device("cpu"))
    manifest = manifest_at(folder, bucket_bytes)
    order = watch(sender)
    checksums = sender.send(slices, manifest)
    state = sender.whole(slices, manifest)
    if rank == 0:
        assert [c.name for c in checksums] == [name for name, _, _ in LAYOUT]
        # While a bucket is written, the next one is gathered.
        assert order[:8] == ["gather", *["gather", "write"] * 3, "write"]
        assert all(torch.equal(state[name], whole) for name, whole in parameters().items())
    else:
        assert not checksums
        assert not state


@pytest.mark.parametrize("num_ranks", [1, 3])
def test_gathered_buckets_are_the_parameters(tmp_path: Path, num_ranks: int) -> None:
    manifest = manifest_at(tmp_path / "weights", 128)
    assert len(buckets_of(manifest)) == 4
    arguments = (num_ranks, rendezvous_port(None), tmp_path / "weights", 128)
    if num_ranks == 1:
        rank_main(0, *arguments)
    else:
        multiprocessing.start_processes(rank_main, arguments, nprocs=num_ranks, start_method="fork")
    files = [tmp_path / "weights" / bucket_file(number) for number in range(4)]
    found = {name: tensor for file in files for name, tensor in load_file(file).items()}
    assert found.keys() == parameters().keys()
    for name, whole in parameters().items():
        assert found[name].dtype == whole.dtype
        assert torch.equal(found[name], whole)
