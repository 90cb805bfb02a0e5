"""Pass rates of a source's rows under one model, as `vlrl data rate` keeps them beside the data.

    NAME.KEY.rates      JSON: a header that says which data, model, reward and threshold, then a list a number
    .NAME.KEY.rates.part   while it is made: the header, then a line for each block of rows, JSON lines

The file is whole or absent. A line of the journal is written at once and synchronized; one that a kill has
cut is not read, and its rows are generated again.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from vlrl.data.curriculum.evidence import RateArray
from vlrl.errors import ConfigError, DataError, ResourceError
from vlrl.types import IntArray

FORMAT = 1
SUFFIX = ".rates"


@dataclass(frozen=True, slots=True)
class RateHeader:
    """The rows, the model and the reward that pass rates belong to.

    Attributes:
        data: fingerprint of the rows.
        model: fingerprint of the weights.
        num_rows: of the source.
        reward: name and options of the reward that passes, as JSON.
        pass_threshold: least value of one that passes.
        num_samples: completions asked for of each row.
        sampling: temperature, most tokens and seed of the completions, as JSON.
        format: of the file.
    """

    data: str
    model: str
    num_rows: int
    reward: str
    pass_threshold: float
    num_samples: int
    sampling: str
    format: int = FORMAT

    @property
    def key(self) -> str:
        """8 hexadecimal digits, other ones for every other header."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()[:8]


@dataclass(slots=True)
class RateFile:
    """How many completions of each row passed.

    Attributes:
        header: what they belong to.
        passed: [N] int64 completions that passed.
        scored: [N] int64 completions that have a score; 0 for a row that has no rate (yet).
        unusable: [N] bool: rows that are too long or broken, and dropped by the config.
    """

    header: RateHeader
    passed: IntArray
    scored: IntArray
    unusable: IntArray

    @classmethod
    def empty(cls, header: RateHeader) -> RateFile:
        """No row has a rate yet."""
        passed, scored, unusable = (np.zeros(header.num_rows, np.int64) for _ in range(3))
        return cls(header, passed, scored, unusable)

    @property
    def rates(self) -> RateArray:
        """[N] float64 pass rates, NaN without one."""
        rates: RateArray = np.where(self.scored > 0, self.passed / np.maximum(1, self.scored), np.nan)
        return rates

    @property
    def missing(self) -> IntArray:
        """Rows that could be used and have no rate."""
        return np.flatnonzero((self.scored == 0) & (self.unusable == 0))


def read_rates(path: Path) -> RateFile:
    """A file of rates.

    Raises:
        ConfigError: if there is none.
        DataError: if it is not what was written.
    """
    try:
        tree = json.loads(path.read_text(encoding="utf-8"))
        header = RateHeader(**tree["header"])
        found = RateFile(header, *(np.asarray(tree[k], np.int64) for k in ("passed", "scored", "unusable")))
    except FileNotFoundError as error:
        raise ConfigError(
            f"{path} does not exist; `vlrl data rate CONFIG` writes it and prints its path"
        ) from error
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise DataError(
            f"{path} is not a file of pass rates ({type(error).__name__}: {error}); make it again with "
            "`vlrl data rate CONFIG`"
        ) from error
    sizes = {found.passed.shape, found.scored.shape, found.unusable.shape}
    if header.format != FORMAT or sizes != {(header.num_rows,)}:
        raise DataError(f"{path} is of another version of vlrl or damaged; run `vlrl data rate CONFIG` again")
    return found


class RateJournal:
    """Rates in the making, in a file beside the one they end in."""

    def __init__(self, final: Path, header: RateHeader) -> None:
        """Go on with what an earlier attempt has left, if it is of the same header.

        Raises:
            ResourceError: if the folder cannot be written.
        """
        self._final, self._part = final, final.with_name(f".{final.name}.part")
        self.rates = read_rates(final) if final.is_file() else RateFile.empty(header)
        lines = list(self._lines())
        if not lines or lines[0] != asdict(header):
            lines = [asdict(header)]
        for line in lines[1:]:
            self._take(line)
        whole = "".join(json.dumps(line) + "\n" for line in lines)  # without a line that was cut
        try:
            final.parent.mkdir(parents=True, exist_ok=True)
            _replace(self._part, whole)
        except OSError as error:
            raise ResourceError(
                f"pass rates cannot be kept in {final.parent} ({error.strerror}); name another folder with "
                "--out"
            ) from error

    def add(
        self, rows: Sequence[int], passed: Sequence[int], scored: Sequence[int], unusable: Sequence[int]
    ) -> None:
        """Keep the counts of some rows, for good.

        Args:
            rows: numbers of those that were generated.
            passed: completions of each that passed.
            scored: completions of each that have a score.
            unusable: numbers of rows that cannot be.
        """
        line = {
            "rows": list(rows),
            "passed": list(passed),
            "scored": list(scored),
            "unusable": list(unusable),
        }
        with self._part.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
            file.flush()
            os.fsync(file.fileno())
        self._take(line)

    def finish(self) -> RateFile:
        """Write the file, and remove the journal."""
        tree = {
            "header": asdict(self.rates.header),
            "passed": self.rates.passed.tolist(),
            "scored": self.rates.scored.tolist(),
            "unusable": self.rates.unusable.tolist(),
        }
        _replace(self._final, json.dumps(tree) + "\n")
        self._part.unlink(missing_ok=True)
        return self.rates

    def _take(self, line: dict[str, Any]) -> None:
        self.rates.passed[line["rows"]] = line["passed"]
        self.rates.scored[line["rows"]] = line["scored"]
        self.rates.unusable[line["unusable"]] = 1

    def _lines(self) -> Iterator[dict[str, Any]]:
        """Whole lines of the journal, up to the first that is not."""
        if not self._part.is_file():
            return
        for text in self._part.read_text(encoding="utf-8", errors="replace").splitlines(keepends=True):
            try:
                line = json.loads(text)
            except ValueError:
                return
            if not text.endswith("\n") or not isinstance(line, dict):
                return
            yield line


def _replace(path: Path, text: str) -> None:
    """Write a file whole: beside it first, on the disk, then in its place."""
    aside = path.with_name(f"{path.name}.{os.getpid()}")
    with aside.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(aside, path)
