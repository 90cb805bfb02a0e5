"""How a run is saved: the model, the ranks' states, groups that were generated and not trained yet."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from vlrl.config import Config
from vlrl.data.curriculum.choice import RowChoices, State
from vlrl.protocols import Processor
from vlrl.rollout.buffer import Buffer, BufferLimits
from vlrl.rollout.collector import Collector
from vlrl.rollout.outcome import TicketOutcome, outcome_of
from vlrl.rollout.replay import GroupReplay
from vlrl.run.checkpoint import RunState, TellFn, save_checkpoint, written_atomically
from vlrl.run.completion import Completion
from vlrl.run.manifest import add_digests
from vlrl.run.remote import RemoteCheckpoints, require_uploaded
from vlrl.run.resume import CONFIG_FILE, config_text
from vlrl.tracking.selection import BestWeights
from vlrl.trainer.driver import Trainer
from vlrl.types import Group

GENERATED_FILE = "generated.pickle"
"""The file with finished groups that were not trained yet, by position."""

REPLAY_FILE = "replay.pickle"
"""The file with earlier groups that may be trained again, see `vlrl.rollout.replay`."""

ROWS_FILE = "rows.npz"
"""The file of adaptive samplers: what is known of each row, see `vlrl.data.curriculum.choice`."""

GroupBuffer = Buffer[TicketOutcome]
Found = tuple[Path, RunState]
"""A checkpoint's folder, and the run's state from there."""
FetchFn = Callable[[TicketOutcome], list[Group]]
"""An outcome's groups, wherever they lie."""


class Saver:
    """Writes a run's checkpoints, and has each completed in the background.

    Attributes:
        selection: which of them is the best one, by evaluations.
    """

    def __init__(self, config: Config, tell: TellFn) -> None:
        """Write nothing yet.

        Args:
            config: of the run.
            tell: called with an event's name and a sentence.
        """
        self._config = config
        self._remote = RemoteCheckpoints.of(config)
        upload = [] if self._remote is None else [self._remote.upload]
        self._completion = Completion([add_digests, *upload], tell)
        self.selection = BestWeights(config)

    def require_storage(self) -> None:
        """Raise ResourceError if there is a URL to upload to and it cannot be written."""
        if self._remote is not None:
            self._remote.require_writable()

    def save(
        self,
        next_step: int,
        trainer: Trainer,
        processor: Processor,
        generated: tuple[Collector, FetchFn] | None,
    ) -> Path:
        """Write a checkpoint from which `next_step` goes on.

        Args:
            next_step: steps that are done.
            trainer: writes weights and states.
            processor: is saved with the model.
            generated: the collector, and how its outcomes' groups are had; None in supervised training.
        """
        config, tickets, rows = self._config, None, None
        best = self.selection.best_checkpoint(config.run_dir)
        pickles: dict[str, Any] = {}
        if generated is not None:
            collector, fetch = generated
            buffer, replay = collector.buffer, collector.replay
            tickets = buffer.snapshot()
            pickles[GENERATED_FILE] = {position: fetch(each) for position, each in buffer.payloads().items()}
            if replay is not None:
                pickles[REPLAY_FILE] = [fetch(outcome) for outcome in replay.kept]
            rows = None if buffer.rows is None else buffer.rows.state()
        folder = save_checkpoint(
            config.run_dir,
            RunState(next_step, config.run.seed, trainer.num_ranks, tickets, self.selection.state()),
            partial(_write_contents, config, trainer, processor, pickles, rows),
            keep=config.checkpoint.keep,
            in_use=(*self._completion.in_use, *([best] if best else [])),
        )
        self.selection.link(config.run_dir)
        self.complete(folder)
        return folder

    def export(self, trainer: Trainer, processor: Processor) -> Path:
        """Write the trained model to RUN/model, in Hugging Face format."""
        final = self._config.run_dir / "model"
        with written_atomically(final) as aside:
            trainer.save_model(aside)
            processor.save(aside)
        return final

    def complete(self, folder: Path) -> None:
        """Have a checkpoint that is whole completed in the background: digests, and the upload."""
        self._completion.begin(folder)

    @property
    def is_uploading(self) -> bool:
        """Whether a checkpoint that was saved is still to go to its URL."""
        return self._remote is not None and self._completion.is_busy

    def finish(self, *, is_done: bool) -> None:
        """Block until every checkpoint is completed, or could not be.

        Args:
            is_done: the run is, so the last checkpoint must be at its URL.

        Raises:
            ResourceError: if it is not.
        """
        self._completion.finish()
        if is_done and self._remote is not None:
            require_uploaded(self._remote, self._config.run_dir)

    def close(self) -> None:
        """Give up what is not completed."""
        self._completion.close()


def open_replay(config: Config, checkpoint: Found | None) -> GroupReplay | None:
    """What may be replayed, as it was when a checkpoint was written; nothing at first. None without it."""
    if (options := config.batch.replay) is None:
        return None
    replay = GroupReplay(options, config.run.seed, config.rollout.prompts_per_step)
    if checkpoint is not None and (file := checkpoint[0] / REPLAY_FILE).is_file():
        kept: list[list[Group]] = pickle.loads(file.read_bytes())
        replay.kept = [outcome_of(groups) for groups in kept]
    return replay


def open_buffer(config: Config, checkpoint: Found | None, rows: RowChoices | None = None) -> GroupBuffer:
    """The buffer as it was when a checkpoint was written; a new one without one, or if it had none.

    Args:
        config: of the run.
        checkpoint: its folder and the run's state from there.
        rows: new; goes on with what the checkpoint knows of rows.

    Raises:
        ConfigError: if that is of other rows.
    """
    limits = BufferLimits.of(config)
    if checkpoint is None:
        return Buffer(limits, rows=rows)
    folder, state = checkpoint
    if rows is not None:
        if (folder / ROWS_FILE).is_file():
            with np.load(folder / ROWS_FILE, allow_pickle=False) as known:
                rows.restore(known)
        else:  # it was written without an adaptive sampler
            tickets = state.tickets or {"next_position": state.next_step * limits.batch_size}
            rows.begin_at(tickets["next_position"])
    if state.tickets is None:
        return Buffer(limits, num_cut=state.next_step, rows=rows)
    finished: dict[int, list[Group]] = pickle.loads((folder / GENERATED_FILE).read_bytes())
    outcomes = {position: outcome_of(groups) for position, groups in finished.items()}
    for position, outcome in outcomes.items():
        outcome.position = position
    return Buffer.restore(limits, state.tickets, outcomes, rows)


def _write_contents(
    config: Config,
    trainer: Trainer,
    processor: Processor,
    pickles: Mapping[str, Any],
    rows: State | None,
    folder: Path,
) -> Mapping[str, int]:
    """Write everything but the run's own state; sizes of what the ranks wrote, see `Trainer.save`."""
    written = trainer.save(folder)
    processor.save(folder / "model")
    (folder / CONFIG_FILE).write_text(config_text(config), encoding="utf-8")
    for name, value in pickles.items():
        (folder / name).write_bytes(pickle.dumps(value))
    if rows is not None:
        np.savez(folder / ROWS_FILE, **rows)  # type: ignore[arg-type]
    return written
