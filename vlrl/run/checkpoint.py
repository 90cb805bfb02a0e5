"""Checkpoints that are whole or absent: written aside, then renamed; loaded only if unchanged."""

from __future__ import annotations

import errno
import json
import os
import shutil
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from vlrl.config import Config
from vlrl.config.options import CheckpointConfig
from vlrl.errors import CheckpointError, ConfigError, ResourceError
from vlrl.run.manifest import MANIFEST_FILE, damage, has_digests, sync, sync_entry, write_manifest
from vlrl.tracking.selection import checkpoint_name

TellFn = Callable[[str, str], None]
"""Takes an event's name and a sentence, see `vlrl.tracking.events`."""

STATE_FILE = "run.json"
"""The file with a checkpoint's RunState and `digests`, the name of the file that verifies the others."""


@dataclass(frozen=True, slots=True)
class RunState:
    """What a run needs to go on besides the trainer's own state.

    The order of the data and every seed are functions of (run seed, position), so these are their state.

    Attributes:
        next_step: to be done.
        seed: the run's.
        num_ranks: of the trainer.
        tickets: which positions are generated and not trained, see `vlrl.rollout.buffer.Buffer.snapshot`;
            None in runs without rollouts, and in old checkpoints: every step took prompts_per_step positions.
        selection: which evaluation was the best one, see `vlrl.tracking.selection`; None in old checkpoints.
    """

    next_step: int
    seed: int
    num_ranks: int
    tickets: Mapping[str, Any] | None = None
    selection: Mapping[str, Any] | None = None


@contextmanager
def written_atomically(final: Path) -> Iterator[Path]:
    """A temporary folder beside `final` that takes its place if the block succeeds, and is removed if not.

    Raises:
        ResourceError: if the disk is full.
    """
    aside = final.parent / f".{final.name}.partial"
    shutil.rmtree(aside, ignore_errors=True)
    try:
        aside.mkdir(parents=True)
        yield aside
        _open_to_umask(aside)
        sync(aside)
        if final.exists():
            old = final.parent / f".{final.name}.old"
            shutil.rmtree(old, ignore_errors=True)
            os.replace(final, old)
            os.replace(aside, final)
            shutil.rmtree(old)
        else:
            os.replace(aside, final)
        sync_entry(final.parent)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise ResourceError(
                f"the disk is full: {final} could not be written ({error.strerror}); free some space, or set "
                "run.dir to another disk; the checkpoints before it are whole"
            ) from error
        raise
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _open_to_umask(folder: Path) -> None:
    """Give files the mode that the umask allows, as the folder has it: safetensors makes its own 0600."""
    allowed = folder.stat().st_mode & 0o666
    for path in folder.rglob("*"):
        if path.is_file() and (mode := path.stat().st_mode & 0o777) | allowed != mode:
            path.chmod(mode | allowed)


WriteFn = Callable[[Path], Mapping[str, int]]
"""Writes the model and the states into a folder; bytes by path of what other processes wrote for it."""


def save_checkpoint(
    run_dir: Path, state: RunState, write: WriteFn, *, keep: int, in_use: Collection[Path] = ()
) -> Path:
    """Write checkpoints/step_NNNNNN with `write` and prune all but the last `keep`.

    Its manifest has sizes; `vlrl.run.manifest.add_digests` completes it.

    Args:
        run_dir: the run's folder.
        state: the run's own.
        write: writes the rest.
        keep: how many there are to be.
        in_use: checkpoints that are not pruned yet: they are read now, or one is the best.

    Raises:
        ResourceError: if the disk is full.
        CheckpointError: if `write` left no model or no states.
    """
    final = run_dir / "checkpoints" / checkpoint_name(state.next_step)
    for unfinished in final.parent.glob(".step_*"):  # of a run that was killed; by time it is another step's
        shutil.rmtree(unfinished)
    with written_atomically(final) as aside:
        written = write(aside)
        tree = {**asdict(state), "digests": MANIFEST_FILE}
        (aside / STATE_FILE).write_text(json.dumps(tree, indent=1), encoding="utf-8")
        write_manifest(aside, written)
    found = checkpoints(run_dir)
    place = found.index(final)
    # Those of later steps were damaged: the run has gone back behind them.
    for other in (*found[: max(0, place + 1 - keep)], *found[place + 1 :]):
        if other in in_use:
            continue
        (other / STATE_FILE).unlink(missing_ok=True)  # what makes it count as whole goes first
        shutil.rmtree(other)
    return final


def latest_checkpoint(run_dir: Path, tell: TellFn = lambda event, text: None) -> tuple[Path, RunState]:
    """The last checkpoint that is whole; nothing of any is loaded before it was verified.

    Those that were written before checkpoints had digests are taken as they are.

    Args:
        run_dir: the run's folder.
        tell: called with an event's name and a sentence about each that was skipped.

    Raises:
        ConfigError: if there is none.
        CheckpointError: if every one is damaged.
    """
    folder, damages = run_dir / "checkpoints", []
    for found in reversed(checkpoints(run_dir)):
        try:
            state = _verified(found, tell)
        except CheckpointError as error:
            damages.append(f"{found.name}: {error}")
            continue
        for text in damages:
            tell("checkpoint_damaged", f"damaged checkpoint {folder}/{text}; going back to {found.name}")
        return found, state
    if not damages:
        raise ConfigError(f"--resume: no checkpoint under {folder}; run without --resume")
    raise CheckpointError(
        f"--resume: every checkpoint under {folder} is damaged: {'; '.join(damages)}. Bring one back from a "
        "copy, or remove the folder and run without --resume"
    )


def require_same_run(state: RunState, config: Config) -> None:
    """Raise ConfigError if a config cannot go on from a checkpoint's state."""
    num_ranks = config.trainer.num_ranks or state.num_ranks  # null: not known before GPUs are counted
    for key, then, now, why in (
        ("run.seed", state.seed, config.run.seed, "the order of the samples follows from it"),
        ("trainer.num_ranks", state.num_ranks, num_ranks, _bound_to_ranks(config)),
    ):
        if then != now and why:
            raise ConfigError(
                f"--resume: the checkpoint was written with {key}={then}, the config says {now}: {why}; "
                "set it back, or give another run.name and no --resume"
            )


def _bound_to_ranks(config: Config) -> str:
    """Why only as many ranks as wrote a checkpoint can read it; "" if any number can."""
    if config.optim.state == "8bit":
        return "with optim.state=8bit blocks of moments share a scale, and a slice may end within a block"
    if config.trainer.offload_optimizer and config.trainer.offload_dir is not None:
        return "with trainer.offload_dir its states are swap files, one set a rank"
    return ""


def checkpoints(run_dir: Path) -> list[Path]:
    """The folders of all checkpoints, damaged ones too, the first step first."""
    return sorted(path for path in (run_dir / "checkpoints").glob("step_*") if path.is_dir())


def _verified(folder: Path, tell: TellFn) -> RunState:
    """The state of a checkpoint; raises CheckpointError, with what is wrong, if it is not whole."""
    if (folder / MANIFEST_FILE).exists() and (wrong := damage(folder)):
        raise CheckpointError(wrong)
    try:
        tree = json.loads((folder / STATE_FILE).read_text(encoding="utf-8"))
        digests = tree.pop("digests", None)
        state = RunState(**tree)
    except OSError as error:
        raise CheckpointError(f"{STATE_FILE} could not be read ({error.strerror})") from error
    except (ValueError, AttributeError, TypeError) as error:
        raise CheckpointError(f"{STATE_FILE} is damaged ({type(error).__name__}: {error})") from error
    if digests and not (folder / digests).exists():
        raise CheckpointError(f"{digests} is missing")
    if not digests:
        tell("checkpoint_not_verified", f"{folder} has no digests of its files, so it is not verified")
    elif not has_digests(json.loads((folder / MANIFEST_FILE).read_text(encoding="utf-8"))):
        text = "all files are there with their sizes; the run ended before their digests were made"
        tell("checkpoint_not_verified", f"{folder}: {text}")
    return state


class SaveInterval:
    """Whether a checkpoint is due after a step: by steps or by minutes, whichever comes first."""

    def __init__(self, config: CheckpointConfig, *, clock: Callable[[], float] = time.monotonic) -> None:
        """Time is counted from here; `clock` gives seconds."""
        self._every, self._clock = config.every, clock
        self._limit_s = None if config.every_minutes is None else 60.0 * config.every_minutes
        self._saved_at = clock()

    def is_due(self, step: int) -> bool:
        """Whether one is due after step number `step`, counted from 0."""
        if self._every and (step + 1) % self._every == 0:
            return True
        return self._limit_s is not None and self._clock() - self._saved_at >= self._limit_s

    def saved(self) -> None:
        """One was written: its time is counted from its end."""
        self._saved_at = self._clock()
