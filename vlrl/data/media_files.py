"""Whether the media files that rows name are there, asked before engines start and nothing is decoded."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import islice

from vlrl.config import Config
from vlrl.config.data import MediaConfig
from vlrl.data import Rows, StreamedRows
from vlrl.data.run_data import Source
from vlrl.errors import DataError
from vlrl.processors.media.sources import Encoded, locate
from vlrl.processors.messages import media_parts
from vlrl.types import Row

LIMIT_S = 20.0
"""So long files are looked for at most; on a slow file system the rest is found when training comes to it."""

NUM_NAMED = 3
"""Missing files that are named; the others are counted."""


def look_for_media(
    sources: Sequence[Source],
    config: Config,
    tell: Callable[[str, str], None],
    *,
    limit_s: float = LIMIT_S,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Look for every file that rows name as a medium, row by row, for limit_s seconds at most.

    Sources whose first row names no file (they make their images, or bring the bytes) are passed over, and
    streamed ones: their rows cannot be read twice.

    Args:
        sources: to train on and held out.
        config: of the run; with data.on_broken=drop what is missing is only reported.
        tell: called with an event's name and a sentence.
        limit_s: for all sources together.
        clock: seconds; for tests.

    Raises:
        DataError: naming the first files that are missing.
    """
    begin, missing, num_missing = clock(), list[str](), 0
    for source in sources:
        if isinstance(source.rows, StreamedRows) or not _names_files(source.rows, config.media):
            continue
        for index in range(len(source.rows)):
            if clock() - begin > limit_s:
                tell(
                    "media_not_all_looked_for",
                    f"the media files of {index:,} of {len(source.rows):,} rows of {source.options.name} "
                    f"were looked for in {limit_s:g} s; `vlrl data check` looks at all of them",
                )
                break
            found = _missing(source.rows, index, config.media)
            num_missing += len(found)
            missing += islice(found, max(0, NUM_NAMED - len(missing)))
    if not missing:
        return
    more = f", and {num_missing - len(missing):,} more" if num_missing > len(missing) else ""
    text = f"media files are missing: {'; '.join(missing)}{more}"
    if config.data.on_broken == "error":
        raise DataError(
            f"{text}; check the paths and options.image_root, or leave such rows out with data.on_broken=drop"
        )
    tell("media_missing", f"{text}; their rows will be left out (data.on_broken=drop)")


def _names_files(rows: Rows, config: MediaConfig) -> bool:
    try:
        return bool(_files(rows[0], config))
    except DataError:  # of the others it may be true
        return True


def _missing(rows: Rows, index: int, config: MediaConfig) -> list[str]:
    try:
        files = _files(rows[index], config)
    except DataError:  # a row that cannot be read is reported when it is to be used
        return []
    return [file.name for file in files if file.path and not os.path.exists(file.path)]


def _files(row: Row, config: MediaConfig) -> list[Encoded]:
    where = f"sample {row['id']!r}"
    parts = (part for message in row["messages"] for part in media_parts(message))
    return [file for part in parts for file in _encoded(part[part["type"]], config, where) if file.path]


def _encoded(source: object, config: MediaConfig, where: str) -> Iterator[Encoded]:
    located = locate(source, config, where)
    yield from (
        one for one in (located if isinstance(located, list) else [located]) if isinstance(one, Encoded)
    )
