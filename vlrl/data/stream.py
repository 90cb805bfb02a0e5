"""The samples of each step, in an order that is a pure function of seed and step, prepared ahead."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace

from vlrl.data.mixture import Mixture
from vlrl.data.order import Order
from vlrl.data.overlong import PromptTooLong
from vlrl.data.row_samplers import IndexedSampler, RowSampler, StreamedSampler
from vlrl.data.rows import StreamedRows
from vlrl.errors import DataError
from vlrl.protocols import Dataset
from vlrl.seeds import derive_seed
from vlrl.types import Row, Sample

MAX_ATTEMPTS = 64
"""Rows tried for one position before the run stops: so many that do not fit are not an accident."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A row made ready, or the reason why it cannot be used.

    Attributes:
        sample: made of it; None if its prompt is too long, and another row is to take its place.
        num_dropped_turns: messages taken out of it so that it fits.
        reason: why there is no sample.
        is_broken: a row that cannot be read or has a broken medium, and not one that is too long.
        is_overlong: it is longer than data.max_prompt_tokens, and kept.
    """

    sample: Sample | None
    num_dropped_turns: int = 0
    reason: str = ""
    is_broken: bool = False
    is_overlong: bool = False


@dataclass(frozen=True, slots=True)
class PreparedSample:
    """A position's sample, and what was dropped on the way to it; `number` is its row's, if rows have any."""

    sample: Sample
    num_dropped_rows: int
    num_broken_rows: int
    num_dropped_turns: int
    is_overlong: bool
    number: int | None = None


def row_counts(prepared: Sequence[PreparedSample]) -> Counter[str]:
    """What was dropped on the way to these samples, by metric."""
    return Counter(
        {
            "data/num_dropped_overlong": sum(d.num_dropped_rows for d in prepared),
            "data/num_dropped_broken": sum(d.num_broken_rows for d in prepared),
            "data/num_dropped_turns": sum(d.num_dropped_turns for d in prepared),
            "data/num_kept_overlong": sum(d.is_overlong for d in prepared),
        }
    )


class SampleStream:
    """Samples by step, resolved by threads `prefetch_steps` ahead.

    Step s takes positions s·k … s·k+k-1 of an endless sequence. A position's source, its row and the rows
    that replace one too long are functions of (run seed, position), so any step can be asked for after a
    resume, and the number of threads changes nothing. Rows of adaptive sources are given with the position.
    """

    def __init__(
        self,
        sources: Sequence[Dataset | StreamedRows],
        prepare: Callable[[Row, int], Prepared],
        *,
        batch_size: int,
        seed: int,
        weights: Sequence[float] = (1.0,),
        num_workers: int = 1,
        prefetch_steps: int = 1,
        on_broken: Callable[[str], None] | None = None,
        owns: Callable[[int], bool] | None = None,
        orders: Mapping[int, Order] | None = None,
        adaptive: frozenset[int] = frozenset(),
    ) -> None:
        """Start the threads.

        Args:
            sources: the datasets that rows are taken from.
            prepare: row and number of its source → sample; called from threads.
            batch_size: samples of a step, k.
            seed: the run's.
            weights: share of each source.
            num_workers: threads.
            prefetch_steps: steps prepared ahead of the one asked for.
            on_broken: called, from threads, with what is wrong with a row that is dropped; without it such a
                row is an error.
            owns: positions that are prepared ahead; None is all.
            orders: of sources, by number, that have one of their own.
            adaptive: numbers of sources whose rows are given, by `prefetch` or when they are asked for.
        """
        self._to_sample, self._batch_size, self._prefetch_steps = prepare, batch_size, prefetch_steps
        self._on_broken = on_broken
        self._owns = owns or (lambda position: True)
        self._mixture, self._adaptive = Mixture(weights, seed), adaptive
        self._samplers: list[RowSampler] = []
        for index, source in enumerate(sources):
            own_seed = source_seed(seed, index)
            self._samplers.append(
                StreamedSampler(source, own_seed)
                if isinstance(source, StreamedRows)
                else IndexedSampler(source, own_seed, (orders or {}).get(index))
            )
        self._executor = ThreadPoolExecutor(max_workers=num_workers, thread_name_prefix="samples")
        self._ahead: dict[tuple[int, int | None], Future[PreparedSample]] = {}
        self._given: dict[tuple[int, int | None], Future[PreparedSample]] = {}
        self.metrics: dict[str, float] = {}
        """Counts of the step last asked for."""

    def batch(self, step: int) -> list[Sample]:
        """Samples of a step; starts preparing those after it.

        Raises:
            DataError: for a row that cannot be used, or if too many in a row are dropped.
        """
        positions = range(step * self._batch_size, (step + 1) * self._batch_size)
        prepared = [future.result() for future in self.prepare(positions)]
        self.metrics = {name: float(count) for name, count in row_counts(prepared).items()}
        return [d.sample for d in prepared]

    def prepare(
        self, positions: Sequence[int], chosen: Mapping[int, int] | None = None
    ) -> list[Future[PreparedSample]]:
        """Samples of any positions, in the making, and with them those of the steps after the last one.

        Args:
            positions: in the sequence.
            chosen: rows of positions that an adaptive sampler chose; the others follow from the seed.
        """
        end, rows = max(positions) + 1, chosen or {}
        ahead = range(end, end + self._prefetch_steps * self._batch_size)
        wanted = [(position, rows.get(position)) for position in positions]
        known = [p for p in ahead if self._mixture.locate(p)[0] not in self._adaptive and self._owns(p)]
        keys = [*wanted, *((position, None) for position in known)]
        given = {key: self._given.pop(key) for key in keys if key in self._given}
        self._ahead = {k: given.get(k) or self._ahead.get(k) or self._submit(*k) for k in keys}
        return [self._ahead[key] for key in wanted]

    def prefetch(self, chosen: Mapping[int, int]) -> None:
        """Begin with samples of positions whose rows an adaptive sampler chose, before they are asked for."""
        for key in chosen.items():
            if key not in self._given:
                self._given[key] = self._submit(*key)

    def close(self) -> None:
        """Stop the threads."""
        self._executor.shutdown(wait=True, cancel_futures=True)

    def _submit(self, position: int, chosen: int | None) -> Future[PreparedSample]:
        return self._executor.submit(self._sample_at, *self._mixture.locate(position), chosen)

    def _sample_at(self, source: int, position: int, chosen: int | None) -> PreparedSample:
        num_overlong = num_broken = 0
        for attempt in range(MAX_ATTEMPTS):
            is_told = chosen is not None and attempt == 0
            number = chosen if is_told else self._samplers[source].number(position, attempt)
            prepared = self._prepared(source, position, attempt, number)
            if prepared.sample is not None:
                turns, is_overlong = prepared.num_dropped_turns, prepared.is_overlong
                return PreparedSample(prepared.sample, num_overlong, num_broken, turns, is_overlong, number)
            num_broken += prepared.is_broken
            num_overlong += not prepared.is_broken
        raise DataError(
            f"{MAX_ATTEMPTS} rows in a row could not be used ({num_overlong} too long for a prompt, "
            f"{num_broken} broken); the last: {prepared.reason}"
        )

    def _prepared(self, source: int, position: int, attempt: int, number: int | None) -> Prepared:
        start = time.perf_counter()
        try:
            prepared = self._to_sample(self._samplers[source].row(position, attempt, number), source)
        except PromptTooLong:
            raise
        except DataError as error:
            if self._on_broken is None:
                raise
            self._on_broken(str(error))
            return Prepared(None, reason=str(error), is_broken=True)
        if prepared.sample is None:
            return prepared
        return replace(prepared, sample=replace(prepared.sample, prepared=(start, time.perf_counter())))


def source_seed(seed: int, index: int) -> int:
    """The seed of a source's order: two sources of one size are not shuffled alike."""
    return derive_seed(seed, "source", index) if index else seed
