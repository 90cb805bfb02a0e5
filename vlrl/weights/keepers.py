"""Keepers: the processes that create the weights' segments in a node's shared memory, and remove them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from vlrl import cluster
from vlrl.errors import EngineError
from vlrl.weights.manifest import Manifest, create_segment
from vlrl.weights.segments import hold, orphans

SHARED_MEMORY = Path("/dev/shm")


class SegmentKeeper:
    """The segments in one node's shared memory: made, held for as long as this lives, and removed."""

    def __init__(self) -> None:
        self._held: dict[Path, int] = {}

    def remove_orphans(self) -> None:
        """Remove what killed runs left here."""
        for orphan in orphans(SHARED_MEMORY):
            orphan.unlink(missing_ok=True)

    def reserve(self, manifest: Manifest) -> None:
        """Make a segment.

        Raises:
            ResourceError: if shared memory is too small.
        """
        create_segment(manifest)
        self._held[Path(manifest.path)] = hold(Path(manifest.path))

    def close(self) -> None:
        """Remove all segments."""
        for path, descriptor in self._held.items():
            path.unlink(missing_ok=True)
            os.close(descriptor)
        self._held.clear()


class NodeKeeper(SegmentKeeper):
    """A `SegmentKeeper` on another node, in a process there."""

    def __init__(self, place: cluster.Place) -> None:
        self._actor = cluster.spawn(SegmentKeeper, place=replace(place, num_cpus=0), env={})

    def remove_orphans(self) -> None:
        """Remove what killed runs left there."""
        cluster.call([self._actor], "remove_orphans")

    def reserve(self, manifest: Manifest) -> None:
        """Make a segment there.

        Raises:
            ResourceError: if shared memory is too small.
        """
        cluster.call([self._actor], "reserve", [manifest])

    def close(self) -> None:
        """Remove all segments; a node that is gone has none."""
        with suppress(EngineError):
            cluster.call([self._actor], "close")
        cluster.stop([self._actor])


def keepers_of(places: Iterable[cluster.Place]) -> list[SegmentKeeper]:
    """A keeper for each machine that one of the places is on: two of Ray's nodes on one share its memory."""
    nodes = {place.address: place for place in sorted(places, key=lambda place: place.is_here)}
    return [SegmentKeeper() if place.is_here else NodeKeeper(place) for place in nodes.values()]
