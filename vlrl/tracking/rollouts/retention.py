"""What is kept of the rollouts of training: the newest steps, as far as their files and images have room."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from vlrl.config.options import RolloutLogConfig
from vlrl.tracking.rollouts.paths import report_files, train_files
from vlrl.tracking.rollouts.read import read_rollouts

GIB = 2**30


class Retention:
    """Removes the oldest steps' files, and images that no step's file mentions any more.

    Images that the rollouts before and after training mention stay.
    """

    def __init__(self, run_dir: Path, options: RolloutLogConfig) -> None:
        """Look at nothing yet; the first call of `apply` reads which images the files mention."""
        self._run_dir, self._options = run_dir, options
        self._sizes: dict[Path, int] = {}
        """Bytes of each step's file, oldest first."""
        self._images: dict[str, tuple[Path, int]] = {}
        """By path in the run's folder: the newest file that mentions an image, and the image's bytes."""

    def apply(self, table: pa.Table, file: Path) -> None:
        """Take a new step's file into account, then remove what is too much; the new file stays."""
        if not self._sizes:
            for earlier in train_files(self._run_dir).values():
                self._add(pq.read_table(earlier, columns=["media"]), earlier)
        self._add(table, file)
        while len(self._sizes) > 1 and self._is_too_much():
            self._remove(next(iter(self._sizes)))

    def _is_too_much(self) -> bool:
        options = self._options
        num_bytes = sum(self._sizes.values()) + sum(size for _, size in self._images.values())
        too_many = options.num_kept_steps is not None and len(self._sizes) > options.num_kept_steps
        return too_many or num_bytes > options.max_gib * GIB

    def _add(self, table: pa.Table, file: Path) -> None:
        self._sizes[file] = file.stat().st_size
        media = table.column("media").combine_chunks().flatten()
        for path in set(media.field("path").to_pylist()):
            image = self._run_dir / path
            known = self._images.get(path)
            size = known[1] if known else image.stat().st_size if image.is_file() else 0
            self._images[path] = (file, size)

    def _remove(self, file: Path) -> None:
        gone = [path for path, (newest, _) in self._images.items() if newest == file]
        kept = self._in_report() if gone else set[str]()
        for path in gone:
            if path not in kept:
                (self._run_dir / path).unlink(missing_ok=True)
            del self._images[path]
        file.unlink(missing_ok=True)
        del self._sizes[file]

    def _in_report(self) -> set[str]:
        files = report_files(self._run_dir)
        return {
            medium["path"] for file in files for record in read_rollouts(file) for medium in record["media"]
        }
