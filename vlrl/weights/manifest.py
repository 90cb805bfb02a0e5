"""Weights on their way from trainer to engine: where each parameter lies, in shared memory, files or buckets.

ZeRO-3 keeps a parameter as equal flat slices, one per rank. On one host the slices, written side by side
into a shared segment, already are the parameter, so an update is one copy on each side, nobody gathers, and
the segment holds a whole model at every moment between steps, which checkpoints read as well. Other engines
are sent buckets: parameters that lie side by side in the same layout, gathered together.
"""

from __future__ import annotations

import json
import mmap
import os
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from math import prod
from pathlib import Path
from typing import Any

import torch

from vlrl.config.engine import Transport
from vlrl.errors import EngineError
from vlrl.process.shared_memory import require_shared_memory
from vlrl.weights.staging import StagedCopies

ALIGNMENT = 64
"""Bytes; a cache line."""


@dataclass(frozen=True, slots=True)
class WeightEntry:
    """Where one parameter lies: name in Hugging Face format, torch dtype name, shape, byte offset."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    offset: int

    @property
    def num_bytes(self) -> int:
        """Size of the parameter."""
        return prod(self.shape) * int(getattr(torch, self.dtype).itemsize)


@dataclass(frozen=True, slots=True)
class Checksum:
    """CRC-32 of a parameter's elements [start, start + count), taken where the trainer holds them."""

    name: str
    start: int
    count: int
    crc32: int


@dataclass(frozen=True, slots=True)
class Manifest:
    """A version of the whole model, or of its adapters: its layout, and where an engine gets it from.

    Attributes:
        path: the segment file; for disk the folder of files; for broadcast "host:port" of the rendezvous.
        entries: the parameters, and then buffers, in the order in which they lie, or are sent.
        num_bytes: of all, alignment included.
        transport: how it travels.
        bucket_bytes: most bytes of a bucket.
        num_members: of the broadcast's group: the trainer's rank 0 and all processes of all engines.
        timeout_s: a broadcast that takes longer is an error.
        checked: whether engines compare every byte with what the trainer sent.
        checksums: of all parameters' parts, if it is checked and lies somewhere whole; a broadcast sends them
            after the weights.
    """

    path: str
    entries: tuple[WeightEntry, ...]
    num_bytes: int
    transport: Transport = "shared_memory"
    bucket_bytes: int = 0
    num_members: int = 0
    timeout_s: float = 0.0
    checked: bool = False
    checksums: tuple[Checksum, ...] = ()

    def as_json(self) -> str:
        """The manifest as text, for engines that run elsewhere."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Manifest:
        """What `as_json` wrote."""
        values = json.loads(text)
        entries = tuple(WeightEntry(**{**e, "shape": tuple(e["shape"])}) for e in values.pop("entries"))
        checksums = tuple(Checksum(**checksum) for checksum in values.pop("checksums"))
        return cls(**values, entries=entries, checksums=checksums)

    def verify(self, arrived: Iterable[tuple[str, torch.Tensor]]) -> None:
        """Compare what has arrived with the checksums.

        Raises:
            EngineError: if it is not what the trainer sent.
        """
        parts: defaultdict[str, list[Checksum]] = defaultdict(list)
        for checksum in self.checksums:
            parts[checksum.name].append(checksum)
        for name, tensor in arrived:
            flat = tensor.view(-1)
            for part in parts.pop(name, []):
                if crc32_of(flat[part.start : part.start + part.count]) != part.crc32:
                    raise EngineError(
                        f"{name}, {part.count} elements from {part.start}, is not what the trainer sent by "
                        f"{self.transport} ({self.path}): it was written over or damaged on the way; engines "
                        "keep the weights they have; continue with --resume"
                    )
        if parts:
            raise EngineError(f"{', '.join(parts)}: sent by the trainer, but not arrived ({self.path})")


@dataclass(frozen=True, slots=True)
class Bucket:
    """Parameters that travel together: bytes [start, start + num_bytes) of the layout."""

    entries: tuple[WeightEntry, ...]
    start: int
    num_bytes: int

    def views(self, buffer: torch.Tensor) -> Iterator[tuple[str, torch.Tensor]]:
        """(name, tensor) of each parameter in a buffer [num_bytes] of uint8."""
        for e in self.entries:
            offset = e.offset - self.start
            part = buffer[offset : offset + e.num_bytes]
            yield e.name, part.view(getattr(torch, e.dtype)).view(e.shape)


def buckets_of(manifest: Manifest) -> list[Bucket]:
    """The layout cut into buckets of at most bucket_bytes; a larger parameter has one of its own."""
    buckets: list[Bucket] = []
    entries: list[WeightEntry] = []
    ends = [e.offset for e in manifest.entries[1:]] + [manifest.num_bytes]
    for entry, end in zip(manifest.entries, ends, strict=True):
        if entries and end - entries[0].offset > manifest.bucket_bytes:
            start = entries[0].offset
            buckets.append(Bucket(tuple(entries), start, entry.offset - start))
            entries = []
        entries.append(entry)
    if entries:
        start = entries[0].offset
        buckets.append(Bucket(tuple(entries), start, manifest.num_bytes - start))
    return buckets


def bucket_file(number: int) -> str:
    """Name of the file of a bucket."""
    return f"{number:05d}.safetensors"


def checksums_of(tensors: Iterable[tuple[str, torch.Tensor]]) -> list[Checksum]:
    """A checksum of each whole parameter."""
    return [Checksum(name, 0, tensor.numel(), crc32_of(tensor.view(-1))) for name, tensor in tensors]


def crc32_of(flat: torch.Tensor) -> int:
    """CRC-32 of a flat tensor's bytes."""
    buffer: Any = flat.detach().cpu().view(torch.uint8).numpy()
    return zlib.crc32(buffer)


def plan_segment(path: Path, parameters: Sequence[tuple[str, str, tuple[int, ...]]]) -> Manifest:
    """Lay (name, dtype, shape) triples out one after the other, aligned."""
    entries, offset = [], 0
    for name, dtype, shape in parameters:
        entry = WeightEntry(name, dtype, shape, offset)
        entries.append(entry)
        offset += -(-entry.num_bytes // ALIGNMENT) * ALIGNMENT
    return Manifest(str(path), tuple(entries), offset)


def create_segment(manifest: Manifest) -> None:
    """Reserve the segment's bytes.

    Raises:
        ResourceError: if shared memory is too small.
    """
    require_shared_memory(manifest.num_bytes, "the weight segment")
    with open(manifest.path, "wb") as file:
        os.posix_fallocate(file.fileno(), 0, manifest.num_bytes)


class Segment:
    """A mapped segment: named tensors that share its memory."""

    def __init__(self, manifest: Manifest) -> None:
        self.manifest = manifest
        with open(manifest.path, "r+b") as file:
            self._map = mmap.mmap(file.fileno(), manifest.num_bytes)
        self.flat = {e.name: self._view(e) for e in manifest.entries}
        self._shapes = {e.name: e.shape for e in manifest.entries}

    def __iter__(self) -> Iterator[tuple[str, torch.Tensor]]:
        """(name, tensor) in the manifest's order; the tensors are views."""
        for name, flat in self.flat.items():
            yield name, flat.view(self._shapes[name])

    def write_shard(
        self, name: str, shard: torch.Tensor, start: int, copies: StagedCopies | None = None
    ) -> None:
        """Copy a rank's flat slice of a parameter to element `start`; the padding past the end is cut.

        With `copies` it may be under way until their context ends.
        """
        target = self.flat[name]
        count = min(shard.numel(), target.numel() - start)
        if count > 0:
            source, place = shard.view(-1)[:count], target[start : start + count]
            if copies is None:
                place.copy_(source)
            else:
                copies.copy(source, into=place)

    def _view(self, entry: WeightEntry) -> torch.Tensor:
        dtype = getattr(torch, entry.dtype)
        return torch.frombuffer(
            self._map, dtype=dtype, count=entry.num_bytes // dtype.itemsize, offset=entry.offset
        )
