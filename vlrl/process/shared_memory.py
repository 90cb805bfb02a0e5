"""Whether shared memory has room, checked before it is filled."""

from __future__ import annotations

import shutil

from vlrl.errors import ResourceError


def require_shared_memory(num_bytes: int, purpose: str) -> None:
    """Raise ResourceError if /dev/shm has not num_bytes to spare."""
    free = shutil.disk_usage("/dev/shm").free
    if free < num_bytes:
        raise ResourceError(
            f"{purpose} needs {num_bytes / 2**30:.2f} GiB of shared memory, /dev/shm has "
            f"{free / 2**30:.2f} GiB free; lower ray.object_store_gib, free some, or run the container with "
            "a larger --shm-size"
        )
