"""Which rows are shown, and with what: `vlrl data show`'s options made into objects."""

from __future__ import annotations

import re

from vlrl.check.data.records import CheckedSource, Job
from vlrl.config import Config
from vlrl.coordinates import FAMILY_FRAMES, CoordinateFrame
from vlrl.data import Rows, open_dataset
from vlrl.data.curriculum.fingerprints import model_fingerprint
from vlrl.data.curriculum.open import rates_beside
from vlrl.errors import ConfigError, DataError
from vlrl.processors.auto import model_type, open_processor
from vlrl.types import Row
from vlrl.viewer.pages.samples import PASS_RATE, SampleLook


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


def pick_rows(job: Job, rows: str | None, limit: int) -> list[tuple[CheckedSource, Row | DataError]]:
    """Rows by their number, counted through all sources; one that cannot be read is its error.

    Args:
        job: with the sources, in order.
        rows: such as "0,5,7-9"; None is the first `limit`.
        limit: at most so many without `rows`.

    Raises:
        ConfigError: for a number that is none or too high.
    """
    sources = job.sources
    total = sum(source.num_rows for source in sources)
    numbers = list(range(min(limit, total))) if rows is None else _numbers(rows, total)
    starts = [sum(source.num_rows for source in sources[:i]) for i in range(len(sources))]
    datasets = [open_dataset(source.config, source.section) for source in sources]
    rated = [_rated(job.config, source, dataset) for source, dataset in zip(sources, datasets, strict=True)]
    picked: list[tuple[CheckedSource, Row | DataError]] = []
    for number in numbers:
        index = max(i for i, start in enumerate(starts) if start <= number)
        try:
            row = datasets[index][number - starts[index]]
            picked.append((sources[index], {**row, **rated[index].get(number - starts[index], {})}))
        except DataError as error:
            picked.append((sources[index], error))
    return picked


def _rated(config: Config, source: CheckedSource, rows: Rows) -> dict[int, dict[str, str]]:
    """Words for the pass rate of each rated row, under the config's model if that was rated."""
    kept = rates_beside(config, source.config, rows)
    if not kept:
        return {}
    model = model_fingerprint(config.model.path)
    rates = max((rates for _, rates in kept), key=lambda rates: rates.header.model == model)
    words = "" if rates.header.model == model else f" by another model ({rates.header.model})"
    return {
        number: {PASS_RATE: f"{passed} of {scored} completions passed{words}"}
        for number, (passed, scored) in enumerate(zip(rates.passed, rates.scored, strict=True))
        if scored
    }


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
