"""Hugging Face datasets: saved to disk, or from the hub, whole or streamed. Nothing is decoded here."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from vlrl.data.readers.record import Record
from vlrl.errors import ConfigError, DataError

if TYPE_CHECKING:
    import datasets


class ArrowReader:
    """Rows of a memory-mapped Hugging Face dataset; images stay bytes or paths."""

    def __init__(self, dataset: datasets.Dataset, name: str, root: Path | None) -> None:
        # As Arrow, no feature is decoded, however deep it is nested.
        self._table, self._name, self._root = dataset.with_format("arrow"), name, root

    def __len__(self) -> int:
        """Number of rows."""
        return len(self._table)

    def __getitem__(self, index: int) -> Record:
        """Row `index`."""
        fields: dict[str, Any] = self._table[index : index + 1].to_pylist()[0]
        return Record(fields, f"{self._name}:{index}", self._root)


class HubStream:
    """Rows of a hub dataset as they come over the network."""

    def __init__(self, dataset: datasets.IterableDataset, name: str, root: Path, shuffle_buffer: int) -> None:
        self._dataset, self._name, self._root = dataset.decode(False), name, root
        self.buffer_size = shuffle_buffer
        split = (dataset.info.splits or {}).get(str(dataset.split))
        self.num_records: int | None = split.num_examples or None if split else None

    def records(self, shuffle_seed: int | None, skip: int) -> Iterator[Record]:
        """The rows from number `skip` on; a seed puts the shards in another order.

        A row's place is its shard and its number there, whatever the order. (datasets' own shuffle() reads
        several shards at once and closes them after a five-second wait.)
        """
        num_shards = self._dataset.num_shards
        shards = np.arange(num_shards)
        if shuffle_seed is not None:
            shards = np.random.default_rng(shuffle_seed).permutation(num_shards)
        rows = (
            (shard, number, fields)
            for shard in shards.tolist()
            for number, fields in enumerate(self._dataset.shard(num_shards, shard))
        )
        for shard, number, fields in islice(rows, skip, None):
            yield Record(fields, f"{self._name}/{shard}:{number}", self._root)


def open_saved(path: str, split: str | None = None, image_root: str | None = None) -> ArrowReader:
    """A folder written by save_to_disk; `split` chooses from several.

    Raises:
        DataError: for a folder that cannot be read.
        ConfigError: if there are several splits and none, or an unknown one, is chosen.
    """
    import datasets

    try:
        saved = datasets.load_from_disk(path)
    except (OSError, ValueError, LookupError) as error:  # IndexError is its answer to a set without rows
        raise DataError(f"{path} cannot be read as a saved dataset, or is empty: {error}") from error
    root = Path(image_root) if image_root else Path(path)
    if isinstance(saved, datasets.DatasetDict):
        chosen = split or next(iter(saved)) if len(saved) == 1 else split
        if chosen not in saved:
            raise ConfigError(f"{path}: options.split={split!r} is not one of {', '.join(saved)}")
        return ArrowReader(saved[chosen], f"{Path(path).name}/{chosen}", root)
    if split is not None:
        raise ConfigError(f"{path} has no splits; leave options.split={split!r} out")
    return ArrowReader(saved, Path(path).name, root)


def open_hub(
    path: str,
    split: str = "train",
    config: str | None = None,
    revision: str | None = None,
    streaming: bool = False,
    shuffle_buffer: int = 1000,
    image_root: str | None = None,
) -> ArrowReader | HubStream:
    """A dataset by its hub name.

    Args:
        path: OWNER/NAME.
        split: train, test, … or a part of one such as train[:10%].
        config: name of one of its configurations.
        revision: branch, tag or commit.
        streaming: read it as it comes, for sets that do not fit on the disk.
        shuffle_buffer: when streaming, rows that are shuffled among themselves and held in memory.
        image_root: folder of media that rows name by path; Hugging Face's cache if not given.

    Raises:
        DataError: if it cannot be loaded.
    """
    import datasets

    root = Path(image_root or datasets.config.HF_CACHE_HOME)
    try:
        loaded = datasets.load_dataset(path, config, split=split, revision=revision, streaming=streaming)
    except (OSError, ValueError, KeyError, datasets.exceptions.DatasetsError) as error:
        raise DataError(
            f"dataset {path!r} cannot be loaded: {type(error).__name__}: {error}; check the name, "
            "options.split and options.config; for a private one log in with `hf auth login`"
        ) from error
    name = f"{path.rsplit('/', 1)[-1]}/{split}"
    return HubStream(loaded, name, root, shuffle_buffer) if streaming else ArrowReader(loaded, name, root)
