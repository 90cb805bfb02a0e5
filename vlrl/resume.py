"""Where a run begins: at its first step in a new folder, or at the checkpoint that --resume goes on from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from vlrl.checkpoint import RunState, TellFn, checkpoints, latest_checkpoint, require_same_run
from vlrl.config import Config
from vlrl.config_history import Change, changes_since, described, require_resumable
from vlrl.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Beginning:
    """The checkpoint to go on from, if any, and how the config differs from that of its steps."""

    checkpoint: tuple[Path, RunState] | None = None
    changes: Sequence[Change] = ()

    @property
    def step(self) -> int:
        """The first one to do."""
        return self.checkpoint[1].next_step if self.checkpoint else 0


def find_beginning(config: Config, *, resume: bool, tell: TellFn) -> Beginning:
    """Where a run begins.

    Args:
        config: of the run.
        resume: whether it goes on.
        tell: of an event's name and a sentence: damaged checkpoints, a changed config.

    Raises:
        ConfigError: for a new run in the folder of another; for a resumed one that has no checkpoint, or
            whose config cannot go on with it.
        CheckpointError: if every checkpoint is damaged.
    """
    run_dir = config.run_dir
    if not resume:
        if checkpoints(run_dir):
            raise ConfigError(
                f"{run_dir} holds an earlier run; go on with --resume, give another run.name, or remove it"
            )
        return Beginning()
    changes = changes_since(run_dir, config)
    require_resumable(changes)
    found = latest_checkpoint(run_dir, tell)
    require_same_run(found[1], config)
    if changes:
        tell("config_changed", described(changes, found[1].next_step))
    return Beginning(found, changes)
