"""The trainer's side of a weight update: every rank writes its slices, or rank 0 gathers bucket by bucket."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import torch
from torch import distributed

from vlrl.weights.group import WeightGroup
from vlrl.weights.manifest import (
    ALIGNMENT,
    Bucket,
    Checksum,
    Manifest,
    Segment,
    bucket_file,
    buckets_of,
    checksums_of,
    crc32_of,
)
from vlrl.weights.staging import StagedCopies

FinishGather = Callable[[], list[list[torch.Tensor]]]
"""Waits for the ranks' slices of a bucket: [num_ranks][num_parameters], none where they are not wanted."""

Slices = Iterable[tuple[str, torch.Tensor]]
"""(name, this rank's flat slice) of every parameter in the manifest's order: ZeRO-3's, equally long on every
rank, the last ones padded. Of a buffer, which every rank has whole, rank 0's is sent, the rest padding."""


class WeightSender:
    """One rank's part in sending; all ranks are asked for the same things in the same order."""

    def __init__(self, rank: int, num_ranks: int, device: torch.device, nodes: Sequence[int] = ()) -> None:
        """Set up.

        Args:
            rank: this one.
            num_ranks: of the trainer.
            device: that the weights are on.
            nodes: number of each rank's node; empty for one node.
        """
        self._rank, self._num_ranks, self._device = rank, num_ranks, device
        self._is_spread = len(set(nodes)) > 1
        self._leads_node = not nodes or nodes.index(nodes[rank]) == rank
        self._copies = StagedCopies()
        self._segments: dict[str, Segment] = {}
        self._group: WeightGroup | None = None

    def send(self, slices: Slices, manifest: Manifest) -> list[Checksum]:
        """Bring the weights to where the manifest says; this rank's checksums, if the manifest is checked.

        Raises:
            EngineError: if engines do not take part in a broadcast within weights.timeout_s.
        """
        if manifest.transport == "shared_memory":
            write = self._write_whole if self._is_spread else self._write_slices
            return write(slices, manifest)
        found: list[Checksum] = []
        for number, (bucket, buffer) in enumerate(self._gathered(slices, manifest)):
            if self._rank:
                continue
            if manifest.transport == "disk":
                _write_file(manifest, number, dict(bucket.views(buffer)))
            else:
                self._member_0(manifest).broadcast(buffer)
            if manifest.checked:
                found += checksums_of(bucket.views(buffer))
        if manifest.transport == "broadcast" and manifest.checked and not self._rank:
            sent = torch.tensor([checksum.crc32 for checksum in found], device=self._device)
            self._member_0(manifest).broadcast(sent)
        return found

    def whole(self, slices: Slices, manifest: Manifest) -> dict[str, torch.Tensor]:
        """The whole model in host memory on rank 0, nothing elsewhere; from shared memory if it is there."""
        if manifest.transport == "shared_memory":
            return {} if self._rank else {name: t.clone() for name, t in self._segment(manifest)}
        state: dict[str, torch.Tensor] = {}
        for bucket, buffer in self._gathered(slices, manifest):
            if not self._rank:
                state |= {name: tensor.cpu() for name, tensor in bucket.views(buffer)}
        return state

    def _segment(self, manifest: Manifest) -> Segment:
        if manifest.path not in self._segments:
            self._segments[manifest.path] = Segment(manifest)
        return self._segments[manifest.path]

    def _write_slices(self, slices: Slices, manifest: Manifest) -> list[Checksum]:
        segment, found = self._segment(manifest), []
        with self._copies:
            for name, slice_ in slices:
                start = self._rank * slice_.numel()
                segment.write_shard(name, slice_, start, self._copies)
                count = min(slice_.numel(), segment.flat[name].numel() - start)
                if manifest.checked and count > 0:
                    found.append(Checksum(name, start, count, crc32_of(slice_.view(-1)[:count])))
        return found

    def _write_whole(self, slices: Slices, manifest: Manifest) -> list[Checksum]:
        """The same for ranks on several nodes: the first of each node writes all ranks' slices there."""
        found: list[Checksum] = []
        for bucket, buffer in self._gathered(slices, manifest, everywhere=True):
            if not self._leads_node:
                continue
            segment = self._segment(manifest)
            with self._copies:
                for name, tensor in bucket.views(buffer):
                    segment.write_shard(name, tensor.view(-1), 0, self._copies)
            if manifest.checked and not self._rank:
                found += checksums_of(bucket.views(buffer))
        return found

    def _gathered(
        self, slices: Slices, manifest: Manifest, *, everywhere: bool = False
    ) -> Iterator[tuple[Bucket, torch.Tensor]]:
        """Each bucket in a buffer of its own, on rank 0 or the first rank of each node; empty elsewhere.

        While a bucket is sent, the next one is gathered.
        """
        coming = iter(slices)
        before: tuple[Bucket, FinishGather] | None = None
        for bucket in buckets_of(manifest):
            mine = [next(coming)[1].detach().view(-1) for _ in bucket.entries]
            finish = self._begin_gather(mine, everywhere=everywhere)
            if before is not None:
                yield before[0], self._joined(*before, everywhere=everywhere)
            before = bucket, finish
        if before is not None:
            yield before[0], self._joined(*before, everywhere=everywhere)

    def _joined(self, bucket: Bucket, finish: FinishGather, *, everywhere: bool) -> torch.Tensor:
        """A gathered bucket's bytes, where they are wanted."""
        of_ranks = finish()
        wanted = self._leads_node if everywhere else not self._rank
        num_bytes = bucket.num_bytes if wanted else 0
        buffer = torch.empty(num_bytes, dtype=torch.uint8, device=self._device)
        if wanted:
            for place, (_, target) in enumerate(bucket.views(buffer)):
                whole = torch.cat([of_rank[place] for of_rank in of_ranks])
                target.view(-1).copy_(whole[: target.numel()])
        return buffer

    def _begin_gather(self, mine: Sequence[torch.Tensor], *, everywhere: bool) -> FinishGather:
        """Begin to gather the ranks' slices of a bucket: one collective for all of them.

        Every rank has them afterwards if they are wanted on several nodes, else rank 0 alone.

        Returns:
            A function that waits for [num_ranks][num_parameters].
        """
        if self._num_ranks == 1:
            return lambda: [list(mine)]
        starts = [0]
        for slice_ in mine:  # aligned, so that any dtype may follow any other
            starts.append(starts[-1] + -(-slice_.nbytes // ALIGNMENT) * ALIGNMENT)
        packed = torch.zeros(starts[-1], dtype=torch.uint8, device=self._device)
        for slice_, start in zip(mine, starts, strict=False):
            packed[start : start + slice_.nbytes].copy_(slice_.view(torch.uint8))
        wanted = everywhere or not self._rank
        gathered = [torch.empty_like(packed) for _ in range(self._num_ranks)] if wanted else None
        if everywhere:
            work = distributed.all_gather(gathered, packed, async_op=True)
        else:
            work = distributed.gather(packed, gathered, async_op=True)
        places = [(start, slice_.nbytes, slice_.dtype) for slice_, start in zip(mine, starts, strict=False)]

        def finish() -> list[list[torch.Tensor]]:
            work.wait()
            return [
                [of_rank[start : start + size].view(dtype) for start, size, dtype in places]
                for of_rank in gathered or []
            ]

        return finish

    def _member_0(self, manifest: Manifest) -> WeightGroup:
        if self._group is None or self._group.address != manifest.path:
            self._group = WeightGroup(
                manifest.path, 0, manifest.num_members, self._device, manifest.timeout_s
            )
        return self._group


def _write_file(manifest: Manifest, number: int, tensors: dict[str, torch.Tensor]) -> None:
    from safetensors.torch import save_file

    folder = Path(manifest.path)
    folder.mkdir(parents=True, exist_ok=True)
    save_file({name: tensor.cpu() for name, tensor in tensors.items()}, folder / bucket_file(number))
