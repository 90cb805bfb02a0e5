"""The weight segment: whole parameters from shards, in shared memory, by name."""

from __future__ import annotations

from collections import namedtuple
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from vlrl import cluster
from vlrl.errors import ResourceError
from vlrl.weights import ALIGNMENT, Manifest, Segment, create_segment, plan_segment

SHAPES = st.lists(st.lists(st.integers(1, 7), min_size=1, max_size=3).map(tuple), min_size=1, max_size=6)


def plan(path: Path, shapes: list[tuple[int, ...]], dtype: str = "float32") -> Manifest:
    return plan_segment(path, [(f"p{i}", dtype, shape) for i, shape in enumerate(shapes)])


@given(SHAPES, st.sampled_from(["float32", "bfloat16"]))
def test_parameters_are_laid_out_aligned_and_apart(shapes: list[tuple[int, ...]], dtype: str) -> None:
    manifest = plan(Path("unused"), shapes, dtype)
    end = 0
    for entry, shape in zip(manifest.entries, shapes, strict=True):
        assert entry.offset >= end
        assert entry.offset % ALIGNMENT == 0
        assert entry.num_bytes == torch.Size(shape).numel() * getattr(torch, dtype).itemsize
        end = entry.offset + entry.num_bytes
    assert end <= manifest.num_bytes


@pytest.mark.parametrize("num_ranks", [1, 2, 3])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_shards_side_by_side_are_the_parameter(tmp_path: Path, num_ranks: int, dtype: str) -> None:
    """ZeRO-3 pads every parameter so that its slices are equal; the last one may be padding alone."""
    shapes = [(4, 5), (7,), (1,), (3, 1, 2)]
    manifest = plan(tmp_path / "segment", shapes, dtype)
    create_segment(manifest)
    writer, reader = Segment(manifest), Segment(manifest)
    whole = {f"p{i}": torch.randn(shape).to(getattr(torch, dtype)) for i, shape in enumerate(shapes)}
    for name, tensor in whole.items():
        size = -(-tensor.numel() // num_ranks)
        padded = torch.full((size * num_ranks,), 9.0, dtype=tensor.dtype)
        padded[: tensor.numel()] = tensor.flatten()
        for rank in range(num_ranks):
            writer.write_shard(name, padded[rank * size : (rank + 1) * size], rank * size)
    found = dict(reader)
    assert list(found) == list(whole)
    for name, tensor in whole.items():
        assert found[name].shape == tensor.shape
        assert torch.equal(found[name], tensor)


def test_a_reader_sees_later_writes(tmp_path: Path) -> None:
    manifest = plan(tmp_path / "segment", [(2,)])
    create_segment(manifest)
    writer, reader = Segment(manifest), Segment(manifest)
    view = dict(reader)["p0"]
    writer.write_shard("p0", torch.tensor([1.0, 2.0]), 0)
    assert view.tolist() == [1.0, 2.0]


def test_too_little_shared_memory_is_said_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(cluster.shutil, "disk_usage", lambda path: usage(64 << 20, 60 << 20, 4 << 20))
    manifest = plan(tmp_path / "segment", [(1024, 1024), (1024, 1024)])
    with pytest.raises(ResourceError, match=r"weight segment needs 0\.01 GiB.*--shm-size"):
        create_segment(manifest)
    assert not (tmp_path / "segment").exists()
