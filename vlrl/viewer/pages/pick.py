"""Which rows are shown, and with what: `vlrl data show`'s options made into objects."""

from __future__ import annotations

import re
from collections.abc import Sequence

from vlrl.check.data.records import CheckedSource, Job
from vlrl.coordinates import FAMILY_FRAMES, CoordinateFrame
from vlrl.data import open_dataset
from vlrl.errors import ConfigError, DataError
from vlrl.processors.auto import model_type, open_processor
from vlrl.types import Row
from vlrl.viewer.pages.samples import SampleLook


def open_look(job: Job, *, frame: CoordinateFrame | None, mask: bool) -> tuple[SampleLook, list[str]]:
    """The processor and the boxes' frame of a job, and what cannot be shown.

    Raises:
        ConfigError: for a model without a processor.
    """
    notes = []
    processor = open_processor(job.config) if job.with_model else None
    if frame is None and job.with_model:
        family = model_type(job.config.model.path)
        frame = FAMILY_FRAMES.get(family)
        if frame is None:
            notes.append(f"boxes are not drawn: models of type {family!r} have no known frame; give --frame")
    elif frame is None:
        notes.append("boxes are not drawn: their frame depends on the model; give --model, or --frame")
    if mask and processor is None:
        notes.append("--mask shows tokens, and there are none without a model")
    return SampleLook(job.config, processor, frame, mask), notes


def pick_rows(
    sources: Sequence[CheckedSource], rows: str | None, limit: int
) -> list[tuple[CheckedSource, Row | DataError]]:
    """Rows by their number, counted through all sources; one that cannot be read is its error.

    Args:
        sources: in order.
        rows: such as "0,5,7-9"; None is the first `limit`.
        limit: at most so many without `rows`.

    Raises:
        ConfigError: for a number that is none or too high.
    """
    total = sum(source.num_rows for source in sources)
    numbers = list(range(min(limit, total))) if rows is None else _numbers(rows, total)
    starts = [sum(source.num_rows for source in sources[:i]) for i in range(len(sources))]
    datasets = [open_dataset(source.config, source.section) for source in sources]
    picked: list[tuple[CheckedSource, Row | DataError]] = []
    for number in numbers:
        index = max(i for i, start in enumerate(starts) if start <= number)
        try:
            picked.append((sources[index], datasets[index][number - starts[index]]))
        except DataError as error:
            picked.append((sources[index], error))
    return picked


def _numbers(text: str, total: int) -> list[int]:
    numbers: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d+)\s*(?:-\s*(\d+)\s*)?", part)
        if not match:
            raise ConfigError(f"--rows {text!r}: {part!r} is not a row or a range of rows, such as 0,5,7-9")
        first, last = int(match[1]), int(match[2] or match[1])
        if not first <= last < total:
            raise ConfigError(f"--rows {text!r}: there are {total:,} rows, numbered from 0 to {total - 1:,}")
        numbers += range(first, last + 1)
    return numbers
