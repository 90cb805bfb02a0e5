"""Rows to samples, in an order that is a pure function of seed and step."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from vlrl.data_options import DatasetConfig
from vlrl.errors import ConfigError, DataError
from vlrl.protocols import Dataset
from vlrl.registry import resolve
from vlrl.seeds import derive_seed
from vlrl.types import Row, Sample


class JsonlDataset:
    """A file of one JSON row a line; image paths are relative to `image_root` or else the file's folder."""

    def __init__(self, path: str, image_root: str | None = None) -> None:
        self._path = Path(path)
        if not self._path.is_file():
            raise DataError(f"dataset file {self._path} does not exist (looked in {Path.cwd()})")
        self._root = Path(image_root) if image_root else self._path.parent
        try:
            text = self._path.read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            raise DataError(f"dataset file {self._path} is not UTF-8: {error}; save it as UTF-8") from error
        # Not splitlines(): a JSON string may hold U+2028 and its like.
        self._lines = [(n, line) for n, line in enumerate(text.split("\n"), start=1) if line.strip()]

    def __len__(self) -> int:
        """Number of rows."""
        return len(self._lines)

    def __getitem__(self, index: int) -> Row:
        """Row `index` with its image paths resolved.

        Raises:
            DataError: naming the file and the line.
        """
        number, line = self._lines[index]
        try:
            row = json.loads(line)
            messages = [self._rooted(message) for message in row["messages"]]
        except (json.JSONDecodeError, KeyError, TypeError) as error:
            raise DataError(
                f"{self._path}:{number}: not a row ({type(error).__name__}: {error}); "
                'a row is {"id": …, "messages": [{"role": …, "content": …}], "answer": …}'
            ) from error
        return {"id": f"{self._path.name}:{number}", **row, "messages": messages}

    def _rooted(self, message: dict[str, Any]) -> dict[str, Any]:
        content = message["content"]
        if isinstance(content, str):
            return message
        parts = [
            {**part, "image": str(self._root / part["image"])} if part["type"] == "image" else part
            for part in content
        ]
        return {**message, "content": parts}


def open_dataset(config: DatasetConfig, section: str) -> Dataset:
    """Open a source by its config; a .jsonl path needs no registration.

    Args:
        config: the source.
        section: its dotted key, for errors.

    Raises:
        ConfigError: for an unknown name or a wrong option.
        DataError: for a missing or empty source.
    """
    is_file = config.name.endswith(".jsonl")
    factory = resolve("datasets", "jsonl" if is_file else config.name)
    options = {"path": config.name, **config.options} if is_file else config.options
    try:
        dataset: Dataset = factory(**options)
    except TypeError as error:
        raise ConfigError(f"{section}.options does not fit {config.name!r}: {error}") from error
    if len(dataset) == 0:
        raise DataError(f"{section}: dataset {config.name!r} is empty; training needs at least one row")
    return dataset


class SampleStream:
    """The samples of each step, prepared one step ahead in a thread.

    Step s takes positions s·k … s·k+k-1 of an endless sequence of shuffled epochs; epoch e's order is
    drawn from (run seed, e), so any step can be asked for after a resume.
    """

    def __init__(
        self,
        dataset: Dataset,
        prepare: Callable[[Row], Sample],
        *,
        num_rows: int | None,
        batch_size: int,
        seed: int,
    ) -> None:
        self._dataset, self._prepare = dataset, prepare
        self._num_rows = min(len(dataset), num_rows or len(dataset))
        self._batch_size, self._seed = batch_size, seed
        self._order = lru_cache(maxsize=2)(self._shuffle)
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="samples")
        self._ahead: dict[int, Future[list[Sample]]] = {}

    def indices(self, step: int) -> list[int]:
        """Row indices of a step."""
        positions = range(step * self._batch_size, (step + 1) * self._batch_size)
        return [int(self._order(p // self._num_rows)[p % self._num_rows]) for p in positions]

    def batch(self, step: int) -> list[Sample]:
        """Samples of a step; starts preparing the next one."""
        future = self._ahead.get(step) or self._executor.submit(self._load, step)
        samples = future.result()
        self._ahead = {step: future, step + 1: self._executor.submit(self._load, step + 1)}
        return samples

    def close(self) -> None:
        """Stop the thread."""
        self._executor.shutdown(wait=True, cancel_futures=True)

    def _load(self, step: int) -> list[Sample]:
        return [self._prepare(self._dataset[i]) for i in self.indices(step)]

    def _shuffle(self, epoch: int) -> np.ndarray[Any, np.dtype[np.int64]]:
        return np.random.default_rng(derive_seed(self._seed, "epoch", epoch)).permutation(self._num_rows)
