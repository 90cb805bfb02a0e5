"""How a failed command ends: a message with the place and the remedy, and an exit code."""

from __future__ import annotations

import errno
import os
import shlex
import sys
import tempfile
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from vlrl.errors import EngineError, InternalError, Interrupted, ResourceError, VlrlError

if TYPE_CHECKING:
    from vlrl.config import Config

RESUME = "; continue with --resume"
"""End of what a run says when it was stopped; the command line puts the whole command in its place."""

_FOLDER = "vlrl_run_dir"
"""Attribute of an exception: the folder of the run that it ended."""


@contextmanager
def resumable_run(config: Config) -> Iterator[None]:
    """Say how to resume a run that was stopped, if it can be; its folder keeps the traceback.

    Raises:
        Interrupted: in place of KeyboardInterrupt as well.
    """
    from vlrl.run.checkpoint import checkpoints

    try:
        yield
    except (KeyboardInterrupt, Interrupted) as error:
        said = str(error).removesuffix(RESUME) or "interrupted; what was not checkpointed is lost"
        if checkpoints(config.run_dir):
            raise Interrupted(f"{said}; continue with: {resume_command(sys.argv[1:])}") from error
        raise Interrupted(f"{said}; there is no checkpoint yet, so run it again") from error
    except Exception as error:
        setattr(error, _FOLDER, config.run_dir)
        raise


def resume_command(arguments: list[str]) -> str:
    """The command that goes on with the run that `vlrl ARGUMENTS` began."""
    return shlex.join(["vlrl", *(a for a in arguments if a != "--resume"), "--resume"])


def explained(error: Exception) -> VlrlError:
    """Any failure as one with a thing, a place and a remedy; of a group of them the first."""
    folder = getattr(error, _FOLDER, None)
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
        setattr(error, _FOLDER, folder)
    if isinstance(error, VlrlError):
        kept = isinstance(error, EngineError)
        return type(error)(f"{error}; traceback: {_keep_traceback(error)}") if kept else error
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        place = error.filename or "a file of the run"
        return ResourceError(
            f"the disk is full: {place} could not be written; free some space or set run.dir"
        )
    if isinstance(error, OSError) and error.filename:
        return ResourceError(f"{error.filename}: {error.strerror}; check the path and its permissions")
    return InternalError(
        f"{type(error).__name__}: {error}; this is a bug of vlrl or of a plug-in, please report it with the "
        f"traceback in {_keep_traceback(error)}"
    )


def _keep_traceback(error: Exception) -> str:
    """Write the traceback where it can be found after a long run that was not started with --debug.

    In the run's folder, if the failure ended a run that has one; else where temporary files go.
    """
    folder = getattr(error, _FOLDER, None)
    if isinstance(folder, Path) and folder.is_dir() and os.access(folder, os.W_OK):
        descriptor, path = _new_file(folder)
    else:
        descriptor, path = tempfile.mkstemp(prefix="vlrl-error-", suffix=".txt")
    with open(descriptor, "w", encoding="utf-8") as file:
        traceback.print_exception(error, file=file)
    return path


def _new_file(folder: Path) -> tuple[int, str]:
    """The first of error.txt, error-2.txt … that is not there yet, opened; its mode honours the umask."""
    number = 1
    while True:
        path = folder / ("error.txt" if number == 1 else f"error-{number}.txt")
        try:
            return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666), str(path)
        except FileExistsError:
            number += 1
