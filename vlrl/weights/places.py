"""Where each version of the weights goes: segments of shared memory by turns, folders, or a group."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from vlrl.config import Config
from vlrl.weights.keepers import SHARED_MEMORY, SegmentKeeper
from vlrl.weights.manifest import Checksum, Manifest, plan_segment
from vlrl.weights.segments import new_path

KEPT_FOLDERS = 2
"""Versions on disk: one that engines may still read, and the newest."""


VERSION = re.compile(r"\d{8}(\.part)?")
"""A folder of a version on disk."""


class WeightPlaces:
    """Hands out a place for every version, and frees what no engine reads any more.

    With mode=continuous there are two segments: the trainer writes version v + 1 while engines still read v.
    By the time it writes v + 2, over v, all engines must have v + 1.

    Attributes:
        current: of the version written last; before the first, of one that was not yet written.
    """

    def __init__(
        self,
        config: Config,
        layout: Sequence[tuple[str, str, tuple[int, ...]]],
        address: str,
        keepers: Sequence[SegmentKeeper] | None = None,
    ) -> None:
        """Reserve what can be reserved.

        Args:
            config: the run's; its weights section says how they travel.
            layout: (name in Hugging Face format, dtype, whole shape) of every parameter and buffer.
            address: "host:port" for a broadcast's rendezvous.
            keepers: of the segments, one a node; by default of this node alone.

        Raises:
            ResourceError: if shared memory is too small.
        """
        weights, generator = config.weights, config.generator
        self._places: list[Manifest] = []
        self._keepers = [SegmentKeeper()] if keepers is None else keepers
        self._num_written = 0
        self._folder = weights.folder or config.run_dir / "weights"
        unplaced = replace(
            plan_segment(Path(), layout),
            transport="shared_memory" if weights.transport == "auto" else weights.transport,
            bucket_bytes=int(weights.bucket_mib * 2**20),
            num_members=1 + (generator.num_replicas or 1) * generator.tensor_parallel_size,
            timeout_s=weights.timeout_s,
        )
        if weights.transport == "broadcast":
            unplaced = replace(unplaced, path=address)
        self.current = unplaced
        self._remove_leftovers()
        if unplaced.transport == "shared_memory":
            for _ in range(2 if generator.mode == "continuous" else 1):
                self._places.append(replace(unplaced, path=str(new_path(SHARED_MEMORY))))
                for keeper in self._keepers:
                    keeper.reserve(self._places[-1])
            self.current = self._places[0]

    def _remove_leftovers(self) -> None:
        """Remove what killed runs left: in shared memory any run, on disk those of this folder."""
        if self.current.transport == "shared_memory":
            for keeper in self._keepers:
                keeper.remove_orphans()
        if self.current.transport == "disk" and self._folder.is_dir():
            for path in self._folder.iterdir():
                if VERSION.fullmatch(path.name):
                    shutil.rmtree(path)

    def next(self) -> Manifest:
        """Where the next version is to be written."""
        if self._places:
            return self._places[self._num_written % len(self._places)]
        if self.current.transport == "disk":
            return replace(
                self.current, path=str(self._folder / f"{self._num_written:08d}.part"), checksums=()
            )
        return self.current

    def written(self, manifest: Manifest, checksums: Sequence[Checksum]) -> None:
        """The version is there, whole; engines may read it from now on, and none that is much older."""
        if manifest.transport == "disk":
            final = Path(manifest.path).with_suffix("")
            os.replace(manifest.path, final)
            manifest = replace(manifest, path=str(final))
            old = self._folder / f"{self._num_written - KEPT_FOLDERS:08d}"
            shutil.rmtree(old, ignore_errors=True)
        self.current = replace(manifest, checksums=tuple(checksums))
        self._num_written += 1

    def close(self) -> None:
        """Free everything."""
        for keeper in self._keepers:
            keeper.close()
        if self.current.transport == "disk":
            for number in range(max(0, self._num_written - KEPT_FOLDERS), self._num_written + 1):
                for name in (f"{number:08d}", f"{number:08d}.part"):
                    shutil.rmtree(self._folder / name, ignore_errors=True)
