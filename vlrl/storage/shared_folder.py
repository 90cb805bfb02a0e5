"""Proof that the driver and others see one folder: their hosts may have another one of the same name."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from vlrl.errors import ConfigError, EngineError, ResourceError

REMEDY = (
    "every host has a folder of its own there; set run.dir to one that all hosts share (NFS, Lustre, a "
    "mounted bucket), or keep the trainer on the driver's host"
)

NO_SPACE = ("No space left", "Disk quota", "unexpected pos", "failed writing file")
"""What a process that could not write says: safetensors and the system in words; torch counts the bytes."""


@dataclass(frozen=True, slots=True)
class SharedFile:
    """A file that the driver wrote; whoever finds it with the same content sees the driver's folder."""

    path: Path
    content: bytes

    @classmethod
    def written_to(cls, path: Path) -> SharedFile:
        """The file as the driver sees it."""
        return cls(path, path.read_bytes())

    @property
    def is_here(self) -> bool:
        """Whether this host has it."""
        try:
            return self.path.read_bytes() == self.content
        except OSError:
            return False

    def require(self, rank: int) -> None:
        """Raise ConfigError, naming this host, if the file is not here or is another one."""
        if not self.is_here:
            raise ConfigError(
                f"trainer rank {rank} on host {socket.gethostname()} does not see the run's folder "
                f"{self.path.parent}: {REMEDY}"
            )


@dataclass(frozen=True, slots=True)
class WrittenFiles:
    """What one rank sees under a folder after all have written there.

    Attributes:
        host: the rank's.
        sizes: bytes of each file, by its path below the folder.
    """

    host: str
    sizes: Mapping[str, int]

    @classmethod
    def under(cls, folder: str) -> WrittenFiles:
        """Everything in a folder, as this host sees it."""
        root = Path(folder)
        found = {
            path.relative_to(root).as_posix(): path.stat().st_size
            for path in sorted(root.rglob("*"))
            if path.is_file()
        }
        return cls(socket.gethostname(), found)


def require_seen(folder: Path, of_ranks: Sequence[WrittenFiles]) -> dict[str, int]:
    """Sizes of all that the ranks wrote under a folder, each of which the driver sees there too.

    Raises:
        ConfigError: naming the rank, its host and the first file that is not there for the driver.
    """
    for rank, written in enumerate(of_ranks):
        for name, size in written.sizes.items():
            path = folder / name
            if not path.is_file() or path.stat().st_size != size:
                raise ConfigError(
                    f"trainer rank {rank} on host {written.host} wrote {path} ({size} bytes), and the driver "
                    f"on host {socket.gethostname()} does not see it: {REMEDY}"
                )
    return {name: size for written in of_ranks for name, size in written.sizes.items()}


@contextmanager
def naming_full_disk(folder: Path) -> Iterator[None]:
    """Raise ResourceError, naming the folder, where processes that write there fail for lack of space."""
    try:
        yield
    except EngineError as error:
        if any(words in str(error) for words in NO_SPACE):
            raise ResourceError(
                f"the disk is full: {folder} could not be written; free some space, or set run.dir to "
                "another disk; the checkpoints before it are whole"
            ) from error
        raise
