"""Earlier groups that are trained again in place of groups without a learning signal.

Selective sample replay (VL-Rethinker, arXiv 2504.08837): groups whose rewards are equal have no advantages,
and they become more as training goes on. They give their places in the batch to earlier groups with a
signal, whose tokens keep the log-probabilities and versions that they were generated with.

Here a group is chosen as a whole, where the paper chooses single completions: its advantages are relative to
it, and its completions share a prefix. A group is too old once its oldest token is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from vlrl.config.asynchronous import ReplayConfig
from vlrl.rollout.outcome import TicketOutcome
from vlrl.seeds import derive_seed


@dataclass(slots=True)
class GroupReplay:
    """What is kept of earlier steps; a function of the run's seed and of what its steps trained (law 8).

    Attributes:
        options: how much is kept, for how long, and how it is chosen.
        seed: the run's.
        num_prompts: tickets of a batch.
        kept: outcomes with a signal, oldest first.
        replayed: of the last batch, those among its outcomes that earlier ones had trained.
    """

    options: ReplayConfig
    seed: int
    num_prompts: int
    kept: list[TicketOutcome] = field(default_factory=list)
    replayed: list[TicketOutcome] = field(default_factory=list)
    _step: int = 0

    def fill(self, outcomes: Sequence[TicketOutcome], step: int) -> list[TicketOutcome]:
        """What a step trains: its own outcomes, of which earlier ones replace some that have no signal.

        Args:
            outcomes: of the step's tickets, in their order.
            step: its number, which is the version of the weights that it trains.
        """
        self._step, filled = step, list(outcomes)
        empty = [place for place, outcome in enumerate(outcomes) if not outcome.signal]
        ready = self._timely(step)
        num_wanted = min(len(empty), len(ready), int(self.options.share * self.num_prompts))
        self.replayed = self._chosen(ready, num_wanted, step)
        for place, outcome in zip(empty, self.replayed, strict=False):
            filled[place] = outcome
        self.kept = [*ready, *(outcome for outcome in outcomes if outcome.signal)][-self.options.size :]
        self.kept = self._timely(step + 1)
        return filled

    def metrics(self) -> dict[str, float]:
        """Numbers of the last batch, see `vlrl.tracking.metrics`."""
        versions = [each.oldest_version for each in self.replayed if each.oldest_version is not None]
        return {
            "replay/num_groups": float(sum(len(outcome.kept) for outcome in self.replayed)),
            "replay/num_kept": float(len(self.kept)),
            **({"replay/staleness_mean": self._step - float(np.mean(versions))} if versions else {}),
        }

    def _timely(self, step: int) -> list[TicketOutcome]:
        """What is kept and is not too old for a step."""
        oldest = step - self.options.max_staleness
        return [
            each for each in self.kept if each.oldest_version is not None and each.oldest_version >= oldest
        ]

    def _chosen(self, ready: Sequence[TicketOutcome], num: int, step: int) -> list[TicketOutcome]:
        """So many of them, none twice: P(j) = |A_j|^α / Σ_k |A_k|^α, one after the other."""
        if num == 0:
            return []
        weights = np.asarray([outcome.signal for outcome in ready], np.float64) ** self.options.power
        rng = np.random.default_rng(derive_seed(self.seed, step, "replay"))
        return [ready[i] for i in rng.choice(len(ready), num, replace=False, p=weights / weights.sum())]
