"""Which row each new position takes, by what training has observed: the driver's part of an adaptive sampler.

    position p sees exactly the outcomes of positions 0 … p - delay

whichever ended first, in sync and in async mode and for any number of workers; delay is the number of slots
of the buffer (pipeline_depth × prompts_per_step × over_sampling). So a row is a function of the seed and of
those outcomes. When p is admitted they are known: in sync mode, and in async mode without filters, always.
With filters in async mode p waits for a slow group that is `delay` positions or more before it.

An outcome counts once, when its position is settled first: one that is generated again, as it was too stale,
keeps its row and adds nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from vlrl.data.curriculum.evidence import Evidence, RateArray
from vlrl.data.curriculum.weighted import RowWeights, Weighted
from vlrl.data.mixture import Mixture
from vlrl.rollout.outcome import TicketOutcome
from vlrl.types import IntArray

NO_ROW = -1
"""Stands for None in the checkpoint's arrays."""

State = dict[str, npt.NDArray[np.generic]]


class AdaptiveSource:
    """The rows of one source: what is known of them, and which one comes next."""

    def __init__(
        self, evidence: Evidence, weights: RowWeights, seed: int, reward: str, excluded: IntArray
    ) -> None:
        """Begin.

        Args:
            evidence: of all rows.
            weights: of rates.
            seed: of the source.
            reward: the part of the score that passes.
            excluded: rows that cannot be used.
        """
        num_rows = evidence.num_seen.size
        self.evidence, self.reward = evidence, reward
        self._weights, self._weighted = weights, Weighted(num_rows, seed)
        self._excluded = np.zeros(num_rows, np.bool_)
        self._excluded[excluded] = True
        self._last: tuple[RateArray, RateArray] | None = None  # rates and weights of the last choice

    def choose(self, position: int) -> int:
        """The row of a position of the source."""
        rates = self.evidence.rates(position)
        excluded: IntArray = np.flatnonzero(self._excluded)
        weights = self._weights.of(rates, position / rates.size, excluded)
        self._last = rates, weights
        return self._weighted.row(position, np.cumsum(weights))

    def exclude(self, row: int) -> None:
        """A row that was replaced, as it is too long or broken, is not chosen again."""
        self._excluded[row] = True

    def metrics(self) -> dict[str, float]:
        """Numbers of the last choice: how many rows have a say in it, and how hard they are thought to be."""
        if self._last is None:
            return {}
        rates, weights = self._last
        shares = weights / weights.sum()
        return {
            "sampler/num_rows_seen": float(np.count_nonzero(self.evidence.num_seen)),
            "sampler/effective_num_rows": float(1.0 / np.square(shares).sum()),
            "sampler/pass_rate_mean": float(rates.mean()),
            "sampler/pass_rate_chosen": float((shares * rates).sum()),
        }

    def state(self) -> State:
        """What `restore` takes."""
        last = np.stack(self._last) if self._last is not None else np.zeros((2, 0))
        return {**self.evidence.state(), "excluded": self._excluded, "last": last}

    def restore(self, state: Mapping[str, npt.NDArray[np.generic]]) -> None:
        """Go on where a checkpoint was written."""
        self.evidence.restore(state)
        self._excluded = state["excluded"].astype(np.bool_)
        rates, weights = state["last"].astype(np.float64)
        self._last = (rates, weights) if rates.size else None


@dataclass(frozen=True, slots=True)
class Observed:
    """The outcome of a position.

    Attributes:
        chosen: its row; NO_ROW for one of a source that is not adaptive.
        played: the row that was generated; another one if the chosen row cannot be used.
        num_passed: completions that passed.
        num_scored: completions that have a score (law 7: those that failed say nothing).
    """

    chosen: int
    played: int
    num_passed: int
    num_scored: int


class RowChoices:
    """Rows of positions, in order; see `vlrl.rollout.buffer.RowChooser`."""

    def __init__(
        self, sources: Sequence[AdaptiveSource | None], mixture: Mixture, delay: int, threshold: float
    ) -> None:
        """Begin at position 0.

        Args:
            sources: None for one that is not adaptive.
            mixture: which source a position falls to.
            delay: positions before one whose outcomes it does not see, at least 1.
            threshold: of a completion that passes.
        """
        self._sources, self._mixture, self._delay, self._threshold = sources, mixture, delay, threshold
        self._num_counted = 0  # outcomes of positions below are in the evidence
        self._settled: dict[int, Observed] = {}
        self._chosen: dict[int, int | None] = {}  # of positions that are not admitted yet

    def is_ready(self, position: int) -> bool:
        """Whether all outcomes that a position is to see are known."""
        return all(before in self._settled for before in range(self._num_counted, position - self._delay + 1))

    def choose(self, position: int) -> int | None:
        """The row of the next position; None if its source is not adaptive. Positions come in order."""
        if position not in self._chosen:
            self._chosen[position] = self._next_row(position)
        return self._chosen.pop(position)

    def ahead(self, first: int, num: int) -> dict[int, int]:
        """Rows of `num` positions from the next to be admitted on, as far as they are known.

        Choosing early changes no row: it sees the same outcomes.
        """
        for position in range(first, first + num):
            if not self.is_ready(position):
                break
            if position not in self._chosen:
                self._chosen[position] = self._next_row(position)
        return {position: row for position, row in self._chosen.items() if row is not None}

    def _next_row(self, position: int) -> int | None:
        for before in range(self._num_counted, position - self._delay + 1):
            self._count(before, self._settled.pop(before))
        self._num_counted = max(self._num_counted, position - self._delay + 1)
        number, own = self._mixture.locate(position)
        source = self._sources[number]
        return None if source is None else source.choose(own)

    def settle(self, position: int, row: int | None, outcome: TicketOutcome) -> None:
        """Take the outcome of a position, the first time."""
        if position < self._num_counted or position in self._settled:
            return
        number, _ = self._mixture.locate(position)
        source = self._sources[number]
        observed = Observed(NO_ROW, NO_ROW, 0, 0)
        if source is not None and row is not None and outcome.row is not None:
            values = [
                member.parts.get(source.reward, member.total)
                for group in (*outcome.kept, *outcome.dropped)
                for member in group.members
                if member.total is not None
            ]
            passed = sum(value >= self._threshold for value in values)
            observed = Observed(row, outcome.row, passed, len(values))
        self._settled[position] = observed

    def metrics(self) -> dict[str, float]:
        """Numbers of the adaptive source, where there is one."""
        adaptive = [source for source in self._sources if source is not None]
        return adaptive[0].metrics() if len(adaptive) == 1 else {}

    def state(self) -> State:
        """What `restore` takes, as arrays."""
        settled = [
            [position, o.chosen, o.played, o.num_passed, o.num_scored]
            for position, o in sorted(self._settled.items())
        ]
        chosen = [[p, NO_ROW if row is None else row] for p, row in self._chosen.items()]
        state: State = {
            "num_counted": np.asarray(self._num_counted, np.int64),
            "settled": np.asarray(settled, np.int64).reshape(-1, 5),
            "chosen": np.asarray(chosen, np.int64).reshape(-1, 2),
        }
        for number, source in enumerate(self._sources):
            if source is not None:
                state |= {f"{number}/{name}": array for name, array in source.state().items()}
        return state

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on where a checkpoint was written; a source that was not adaptive then begins with nothing."""
        self._num_counted = int(state["num_counted"])
        self._settled = {int(position): Observed(*map(int, rest)) for position, *rest in state["settled"]}
        self._chosen = {int(p): None if row == NO_ROW else int(row) for p, row in state["chosen"]}
        for number, source in enumerate(self._sources):
            own = {key.partition("/")[2]: state[key] for key in state if key.startswith(f"{number}/")}
            if source is not None and own:
                source.restore(own)

    def begin_at(self, position: int) -> None:
        """Go on from a checkpoint without a state: nothing of the positions before is known, or awaited."""
        self._num_counted = position

    def _count(self, position: int, observed: Observed) -> None:
        number, own = self._mixture.locate(position)
        source = self._sources[number]
        if source is None or observed.chosen == NO_ROW:
            return
        if observed.played != observed.chosen:
            source.exclude(observed.chosen)
        if observed.num_scored:
            source.evidence.observe(observed.played, own, observed.num_passed, observed.num_scored)
