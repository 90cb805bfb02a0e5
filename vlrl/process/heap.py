"""What glibc's allocator is told when a process that computes on a CPU starts."""

from __future__ import annotations

from collections.abc import Mapping

REUSED_MEMORY: Mapping[str, str] = {
    "MALLOC_MMAP_MAX_": "0",
    "MALLOC_TRIM_THRESHOLD_": str(2**40),
    "MALLOC_TOP_PAD_": str(2**26),
}
"""Memory that was freed is kept and given out again. Else pages go back to the kernel all the time, which
clears them before they come again: most of the time of a load of weights, a fifteenth of a rank's step."""
ONE_HEAP: Mapping[str, str] = {"MALLOC_ARENA_MAX": "1"}
"""Of a process that does not compute in its main thread: other threads' heaps give back what was freed.
Threads of a kernel that take memory themselves wait for each other: a rank's attention took twice as long."""
