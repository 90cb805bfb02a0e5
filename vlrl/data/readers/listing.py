"""A YAML list of data files, each with the part of it that is taken: VLM-R1's and LLaVA's data configs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from vlrl.config.strict_yaml import load_yaml
from vlrl.data.readers.record import Concatenation, Reader, Record
from vlrl.data.readers.text_files import JsonlReader, JsonReader, existing_file, holds_lines
from vlrl.errors import DataError
from vlrl.seeds import derive_seed

STRATEGY = re.compile(r"(first|end|random):(\d+)(%?)")


class Selection:
    """Some of a reader's records, by their numbers."""

    def __init__(self, reader: Reader, indices: list[int]) -> None:
        self._reader, self._indices = reader, indices

    def __len__(self) -> int:
        """Number of records taken."""
        return len(self._indices)

    def __getitem__(self, index: int) -> Record:
        """The record at `index`."""
        return self._reader[self._indices[index]]


def open_listing(path: str, image_root: str | None = None, seed: int = 0) -> Concatenation:
    """Read `datasets: [{json_path: …, sampling_strategy: first:3000 | end:10% | random:50% | all}]`.

    Args:
        path: the YAML file.
        image_root: of every file in it; each file's own folder if not given.
        seed: of random choices.

    Raises:
        DataError: for a missing file, or an entry that is none of these.
    """
    file = existing_file(path)
    try:
        tree = load_yaml(file.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise DataError(f"{file} is not valid YAML: {error}") from error
    entries = tree.get("datasets") if isinstance(tree, dict) else None
    if not isinstance(entries, list) or not all(isinstance(e, dict) and "json_path" in e for e in entries):
        raise DataError(f"{file} must hold datasets: a list of json_path and, if wanted, sampling_strategy")
    return Concatenation([_open(entry, file, image_root, seed, n) for n, entry in enumerate(entries)])


def _open(entry: dict[str, Any], listing: Path, image_root: str | None, seed: int, number: int) -> Reader:
    path = listing.parent / str(entry["json_path"])
    if not path.is_file():  # their examples are run from the folder that the paths start from
        path = existing_file(str(entry["json_path"]))
    lines = path.suffix != ".json" or holds_lines(path)
    reader: Reader = (JsonlReader if lines else JsonReader)(str(path), image_root)
    strategy = str(entry.get("sampling_strategy", "all"))
    if strategy == "all":
        return reader
    match = STRATEGY.fullmatch(strategy)
    if match is None:
        raise DataError(
            f"{listing}: sampling_strategy {strategy!r} of {path.name} is not one of all, first:N, end:N and "
            "random:N (N rows, or N% of them)"
        )
    kind, amount, percent = match[1], int(match[2]), match[3]
    size = min(len(reader), -(-amount * len(reader) // 100) if percent else amount)
    if kind == "random":
        rng = np.random.default_rng(derive_seed("listing", seed, number))
        return Selection(reader, rng.permutation(len(reader))[:size].tolist())
    begin = 0 if kind == "first" else len(reader) - size
    return Selection(reader, list(range(begin, begin + size)))
