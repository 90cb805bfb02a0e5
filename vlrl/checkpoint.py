"""Checkpoints that are whole or absent: written aside, then renamed."""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from vlrl.errors import ConfigError, ResourceError


@dataclass(frozen=True, slots=True)
class RunState:
    """What a run needs to go on besides the trainer's own state.

    The order of the data and every seed are functions of (run seed, position), so these are their state.

    Attributes:
        next_step: to be done.
        seed: the run's.
        num_ranks: of the trainer.
        tickets: which positions are drawn and not trained, see `vlrl.buffer.Buffer.snapshot`; None in runs
            without rollouts, and in old checkpoints: every step took prompts_per_step positions.
    """

    next_step: int
    seed: int
    num_ranks: int
    tickets: Mapping[str, Any] | None = None


@contextmanager
def written_aside(final: Path) -> Iterator[Path]:
    """A temporary folder beside `final` that takes its place if the block succeeds, and is removed if not.

    Raises:
        ResourceError: if the disk is full.
    """
    aside = final.parent / f".{final.name}.partial"
    shutil.rmtree(aside, ignore_errors=True)
    try:
        aside.mkdir(parents=True)
        yield aside
        if final.exists():
            old = final.parent / f".{final.name}.old"
            shutil.rmtree(old, ignore_errors=True)
            os.replace(final, old)
            os.replace(aside, final)
            shutil.rmtree(old)
        else:
            os.replace(aside, final)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise ResourceError(
                f"the disk is full: {final} could not be written ({error.strerror}); free some space, or set "
                "run.dir to another disk; the checkpoints before it are whole"
            ) from error
        raise
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def save_checkpoint(run_dir: Path, state: RunState, write: Callable[[Path], None], *, keep: int) -> Path:
    """Write checkpoints/step_NNNNNN with `write` and prune all but the last `keep`."""
    folder = run_dir / "checkpoints"
    final = folder / f"step_{state.next_step:06d}"
    with written_aside(final) as aside:
        write(aside)
        (aside / "run.json").write_text(json.dumps(asdict(state), indent=1), encoding="utf-8")
    for old in _checkpoints(run_dir)[:-keep]:
        (old / "run.json").unlink()  # what makes it count as whole goes first
        shutil.rmtree(old)
    return final


def latest_checkpoint(run_dir: Path) -> tuple[Path, RunState]:
    """The last whole checkpoint.

    Raises:
        ConfigError: if there is none.
    """
    found = _checkpoints(run_dir)
    if not found:
        raise ConfigError(f"--resume: no checkpoint under {run_dir / 'checkpoints'}; run without --resume")
    state = RunState(**json.loads((found[-1] / "run.json").read_text(encoding="utf-8")))
    return found[-1], state


def _checkpoints(run_dir: Path) -> list[Path]:
    return sorted(p.parent for p in (run_dir / "checkpoints").glob("step_*/run.json"))
