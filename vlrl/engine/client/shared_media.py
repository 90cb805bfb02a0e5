"""Media in the cluster's shared memory: put there once, named by hash in every request after that.

Small ones are sent with the requests instead: to put one there and to read it costs more than its bytes.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import Any

from vlrl import cluster
from vlrl.types import Media

SMALL_BYTES = 32 * 2**10
"""An image of 100x100 pixels at most."""


class SharedMedia:
    """Media that the driver has put into shared memory; the least recently used are removed first."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._references: OrderedDict[str, tuple[Any, int]] = OrderedDict()

    def references(self, media: Iterable[Media]) -> dict[str, Any]:
        """sha256 → reference of each medium, or the medium itself if it is small; the new ones put first.

        What one call asks for stays, even beyond max_bytes: a request is whole or it is nothing.
        """
        every = {medium.sha256: medium for medium in media}
        wanted = {sha256: medium for sha256, medium in every.items() if medium.frames.nbytes > SMALL_BYTES}
        for sha256, medium in wanted.items():
            if sha256 not in self._references:
                self._references[sha256] = (cluster.put(medium), medium.frames.nbytes)
            self._references.move_to_end(sha256)
        total = sum(num_bytes for _, num_bytes in self._references.values())
        while total > self._max_bytes and len(self._references) > len(wanted):
            _, (_, num_bytes) = self._references.popitem(last=False)
            total -= num_bytes
        return every | {sha256: self._references[sha256][0] for sha256 in wanted}

    def release(self, names: Iterable[str]) -> None:
        """Forget media by sha256: what is asked for again is put again."""
        for sha256 in names:
            self._references.pop(sha256, None)


def fetch_media(references: Mapping[str, Any]) -> dict[str, Media]:
    """sha256 → medium of what `references` gave, its frames read in place from shared memory."""
    put = {sha256: value for sha256, value in references.items() if not isinstance(value, Media)}
    found = cluster.fetch_many(list(put.values()))
    return {**references, **dict(zip(put, found, strict=True))}
