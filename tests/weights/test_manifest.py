"""The weight segment: whole parameters from shards, in shared memory, by name."""

from __future__ import annotations

import shutil
from collections import namedtuple
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any

import pytest
import torch
from builders import make_config
from hypothesis import given, settings
from hypothesis import strategies as st

from vlrl.errors import EngineError, ResourceError
from vlrl.process.network import rendezvous_port
from vlrl.weights.group import WeightGroup
from vlrl.weights.manifest import (
    ALIGNMENT,
    Checksum,
    Manifest,
    Segment,
    buckets_of,
    crc32_of,
    create_segment,
    plan_segment,
)
from vlrl.weights.places import WeightPlaces

SHAPES = st.lists(st.lists(st.integers(1, 7), min_size=1, max_size=3).map(tuple), min_size=1, max_size=6)


def plan(path: Path, shapes: list[tuple[int, ...]], dtype: str = "float32") -> Manifest:
    return plan_segment(path, [(f"p{i}", dtype, shape) for i, shape in enumerate(shapes)])


@settings(deadline=None)
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
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(64 << 20, 60 << 20, 4 << 20))
    manifest = plan(tmp_path / "segment", [(1024, 1024), (1024, 1024)])
    with pytest.raises(ResourceError, match=r"weight segment needs 0\.01 GiB.*--shm-size"):
        create_segment(manifest)
    assert not (tmp_path / "segment").exists()


# Buckets.


@settings(deadline=None)
@given(SHAPES, st.integers(1, 2000))
def test_buckets_cover_the_layout_once_in_order(shapes: list[tuple[int, ...]], max_bytes: int) -> None:
    manifest = replace(plan(Path("unused"), shapes), bucket_bytes=max_bytes)
    buckets = buckets_of(manifest)
    assert [e for b in buckets for e in b.entries] == list(manifest.entries)
    assert [b.start for b in buckets] == [0, *(b.start + b.num_bytes for b in buckets[:-1])]
    assert sum(b.num_bytes for b in buckets) == manifest.num_bytes
    assert all(len(b.entries) == 1 or b.num_bytes <= max_bytes for b in buckets)


@settings(deadline=None)
@given(SHAPES, st.integers(1, 2000), st.sampled_from(["float32", "bfloat16"]))
def test_what_is_put_into_a_bucket_is_read_from_it(
    shapes: list[tuple[int, ...]], max_bytes: int, dtype: str
) -> None:
    manifest = replace(plan(Path("unused"), shapes, dtype), bucket_bytes=max_bytes)
    for bucket in buckets_of(manifest):
        buffer = torch.zeros(bucket.num_bytes, dtype=torch.uint8)
        sent = {name: torch.randn(t.shape).to(t.dtype) for name, t in bucket.views(buffer)}
        for name, target in bucket.views(buffer):
            target.copy_(sent[name])
        assert all(torch.equal(tensor, sent[name]) for name, tensor in bucket.views(buffer.clone()))


# Checksums.


@pytest.mark.parametrize("damage", ["one bit", "two swapped", "a shard missing"])
def test_checksums_of_shards_notice_any_damage(tmp_path: Path, damage: str) -> None:
    manifest = plan(tmp_path / "segment", [(4, 5), (7,)])
    create_segment(manifest)
    segment, checksums = Segment(manifest), []
    for name, whole in {"p0": torch.randn(20), "p1": torch.randn(7)}.items():
        size = -(-whole.numel() // 2)
        for start in (0, size):
            shard = whole[start : start + size]
            segment.write_shard(name, shard, start)
            checksums.append(Checksum(name, start, len(shard), crc32_of(shard)))
    sent = replace(manifest, checksums=tuple(checksums))
    sent.verify(Segment(sent))
    flat = segment.flat["p1"]
    if damage == "one bit":
        flat.view(torch.uint8)[27] ^= 1
    elif damage == "two swapped":
        flat[[0, 1]] = flat[[1, 0]]
    else:
        flat[4:] = 0
    with pytest.raises(EngineError, match=r"p1, \d elements from \d, is not what the trainer sent"):
        sent.verify(Segment(sent))


def test_a_parameter_that_does_not_arrive_is_noticed() -> None:
    manifest = replace(plan(Path("unused"), [(2,)]), checksums=(Checksum("p0", 0, 2, 0),))
    with pytest.raises(EngineError, match="p0: sent by the trainer, but not arrived"):
        manifest.verify([])


# Places.


def places(tmp_path: Path, **sections: Any) -> WeightPlaces:
    config = make_config(run={"dir": str(tmp_path)}, **sections)
    return WeightPlaces(config, [("p", "float32", (3,))], "127.0.0.1:1")


@pytest.mark.parametrize(("mode", "num_segments"), [("batch", 1), ("continuous", 2)])
def test_while_engines_read_one_segment_the_trainer_writes_another(
    tmp_path: Path, mode: str, num_segments: int
) -> None:
    of_run = places(tmp_path, generator={"mode": mode})
    written = []
    try:
        for value in range(4):
            place = of_run.next()
            assert num_segments == 1 or place.path != of_run.current.path or not written
            Segment(place).write_shard("p", torch.full((3,), float(value)), 0)
            of_run.written(place, [])
            assert dict(Segment(of_run.current))["p"].tolist() == [value] * 3
            written.append(place.path)
        assert len(set(written)) == num_segments
        assert written[:num_segments] * (4 // num_segments) == written
    finally:
        of_run.close()
    assert not any(Path(path).exists() for path in written)


def test_folders_appear_whole_and_old_ones_go(tmp_path: Path) -> None:
    of_run = places(tmp_path, weights={"transport": "disk"})
    for number in range(4):
        place = of_run.next()
        Path(place.path).mkdir(parents=True)
        assert place.path.endswith(".part")
        of_run.written(place, [])
        assert Path(of_run.current.path).is_dir()
        folders = sorted(p.name for p in (tmp_path / "run" / "weights").iterdir())
        assert folders == [f"{n:08d}" for n in range(max(0, number - 1), number + 1)]
    of_run.close()
    assert not list((tmp_path / "run" / "weights").iterdir())


# The group of a broadcast.


def members(num_members: int, address: str, work: Callable[[WeightGroup, int], Any]) -> list[Any]:
    def member(number: int) -> Any:
        group = WeightGroup(address, number, num_members, torch.device("cpu"), timeout_s=30.0)
        return work(group, number)

    with ThreadPoolExecutor(num_members) as pool:
        return list(pool.map(member, range(num_members)))


def test_everybody_gets_what_member_0_sends() -> None:
    def work(group: WeightGroup, number: int) -> list[list[int]]:
        sent = [torch.arange(5) * (10 + i) if number == 0 else torch.zeros(5).long() for i in range(3)]
        return [group.broadcast(buffer).tolist() for buffer in sent]

    found = members(3, f"127.0.0.1:{rendezvous_port(None)}", work)
    assert found[0] == found[1] == found[2] == [[i * k for i in range(5)] for k in (10, 11, 12)]


def test_a_member_that_is_left_alone_says_so() -> None:
    given_up = Event()

    def work(group: WeightGroup, number: int) -> None:
        if number == 0:
            assert given_up.wait(60)
            return
        group._timeout_s = 0.5
        try:
            group.broadcast(torch.zeros(3))
        finally:
            given_up.set()

    with pytest.raises(EngineError, match=r"broadcast: member 1 of 2 .* lost the others"):
        members(2, f"127.0.0.1:{rendezvous_port(None)}", work)


def test_a_manifest_as_json_is_the_same_again() -> None:
    manifest = replace(
        plan(Path("/dev/shm/place"), [(2, 3), (5,)]),
        checksums=(Checksum("p0", 0, 6, 123), Checksum("p1", 0, 5, 2**32 - 1)),
        transport="broadcast",
        timeout_s=1.5,
    )
    again = Manifest.from_json(manifest.as_json())
    assert again == manifest and hash(again) == hash(manifest)
