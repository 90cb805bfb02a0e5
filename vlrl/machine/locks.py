"""What the locked sets of packages (requirements/*.lock) need of a machine.

tools/lock.py writes locks.json together with the locks.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

FILE = Path(__file__).with_name("locks.json")


class LockFacts(NamedTuple):
    """What one locked set needs.

    Attributes:
        kind: name of its lock.
        pythons: minor versions of Python, such as "3.11", on which the set is complete, with wheels for all.
        platform: pip's tag of the oldest system that the wheels run on, such as "manylinux_2_31_x86_64".
        cuda: version of CUDA that torch is built for, such as "13.0"; empty for a CPU build.
        download_bytes: size of its wheels.
        unpacked_bytes: size of what they hold.
        digest: SHA-256 of the lock's lines without comments.
    """

    kind: str
    pythons: list[str]
    platform: str
    cuda: str
    download_bytes: int
    unpacked_bytes: int
    digest: str

    @property
    def glibc(self) -> tuple[int, int]:
        """Oldest version of the GNU C library."""
        _, major, minor, _ = self.platform.split("_", 3)
        return int(major), int(minor)

    @property
    def architecture(self) -> str:
        """Processor, as `platform.machine()` has it."""
        return self.platform.split("_", 3)[3]


def lock_facts(kind: str) -> LockFacts:
    """The facts of requirements/KIND.lock."""
    return LockFacts(kind=kind, **json.loads(FILE.read_text(encoding="utf-8"))[kind])
