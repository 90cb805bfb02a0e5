"""What a run keeps of the rollouts that it trains: which groups, numbered how, once the step is trained."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from vlrl.config import Config
from vlrl.rollout.collector import CollectedBatch
from vlrl.rollout.outcome import TicketOutcome
from vlrl.run.players.rollouts import Rollouts
from vlrl.run.players.tables import OutcomeNumbers
from vlrl.tracking.rollouts.log import RolloutLog, TellFn
from vlrl.tracking.rollouts.paths import train_file
from vlrl.tracking.rollouts.read import read_rollouts
from vlrl.trainer.driver import Trainer


class KeptRollouts:
    """Has each step's rollouts written to the run's folder, with what the trainer computed of them."""

    def __init__(
        self, config: Config, rollouts: Rollouts, trainer: Trainer, first_step: int, tell: TellFn
    ) -> None:
        """Remove what an interrupted run kept of the steps to come, see `RolloutLog`.

        Args:
            config: of the run.
            rollouts: have the groups.
            trainer: has computed the values.
            first_step: of those to come.
            tell: called with an event's name and a sentence.
        """
        options, self._run_dir = config.logging.rollouts, config.run_dir
        self._rollouts, self._trainer, self._max_groups = rollouts, trainer, options.groups
        self._log = RolloutLog(config.run_dir, options, first_step=first_step, tell=tell)
        self.flush, self.close = self._log.flush, self._log.close

    def keep(self, step: int, collected: CollectedBatch) -> None:
        """Have the rollouts of a step that has been trained written, if they are to be kept."""
        values = self._trainer.take_token_values()
        if not self._log.wants(step):
            return
        own = [ticket.payload for ticket in collected.tickets if ticket.payload]
        outcomes = first_of([*collected.trained, *collected.refused], self._max_groups)
        numbers = numbers_of_step(step, outcomes, own)
        self._log.write(step, lambda: self._rollouts.tabulate(outcomes, numbers, values))

    def read(self, step: int) -> list[dict[str, Any]] | None:
        """The rollouts of the last step that was given to `keep`, once they are written; None if not kept."""
        self.flush()
        return read_rollouts(train_file(self._run_dir, step)) if self._log.wants(step) else None


def first_of(outcomes: Sequence[TicketOutcome], max_groups: int | None) -> list[TicketOutcome]:
    """The first outcomes, up to so many groups; one of several agents' groups stays whole."""
    chosen, num_groups = list[TicketOutcome](), 0
    for outcome in outcomes:
        if max_groups is not None and num_groups >= max_groups:
            break
        chosen.append(outcome)
        num_groups += len(outcome.kept) + len(outcome.dropped)
    return chosen


def numbers_of_step(
    step: int, outcomes: Sequence[TicketOutcome], own: Sequence[TicketOutcome]
) -> list[OutcomeNumbers]:
    """How a step's outcomes are numbered.

    Args:
        step: its number.
        outcomes: those that are trained, in the order in which they are packed, then those that are not.
        own: of the batch's tickets; others that are trained are replayed.
    """
    numbers, kept, mine = list[OutcomeNumbers](), 0, set(map(id, own))
    refused = sum(len(outcome.kept) for outcome in outcomes)
    for outcome in outcomes:
        is_replayed = id(outcome) not in mine and bool(outcome.kept)
        numbers.append(OutcomeNumbers(step, outcome.position, kept, refused, is_replayed))
        kept, refused = kept + len(outcome.kept), refused + len(outcome.dropped)
    return numbers
