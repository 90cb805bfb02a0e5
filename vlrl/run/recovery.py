"""A run whose trainer dies is resumed from its last checkpoint, within the same program."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeAlias

from vlrl.config import Config
from vlrl.errors import EngineError, TrainerDied
from vlrl.process.event_loop import call_page
from vlrl.run.checkpoint import checkpoints
from vlrl.run.remote import upload_missing
from vlrl.run.summary import finished
from vlrl.tracking.console import TrainConsole
from vlrl.tracking.events import Events

Summary: TypeAlias = dict[str, object]


def run_to_end(
    train_once: Callable[[Config, TrainConsole, bool], Summary],
    config: Config | Mapping[str, Any],
    console: TrainConsole | None,
    resume: bool,
) -> Summary:
    """Train by a page, called from Python: in a script, a thread, or a notebook.

    A trainer that dies is restarted from the last checkpoint, see `with_restarts`.

    Args:
        train_once: the page's attempt, given the config, the console and whether to resume.
        config: a config, or a mapping that is one; functions and classes may stand where it has names.
        console: where progress is shown; by default on stdout.
        resume: whether the first attempt goes on from the last checkpoint.

    Raises:
        VlrlError: with what is wrong, where, and the remedy.
        Interrupted: after a clean save, on Ctrl-C or SIGTERM.
    """

    def page(checked: Config, shown: TrainConsole) -> Summary:
        return with_restarts(partial(train_once, checked, shown), checked, shown, resume)

    return call_page(page, config, console, lambda checked: TrainConsole(checked.run.name, checked.num_steps))


def with_restarts(
    attempt: Callable[[bool], Summary], config: Config, console: TrainConsole, resume: bool
) -> Summary:
    """The summary of an attempt at the run, which is made again each time its trainer dies.

    Everything of the attempt before is gone by then, engines included, so the next one is what `--resume` is:
    it redoes the steps since the checkpoint with the same samples, and its metrics take the place of theirs.
    A run that had no checkpoint yet begins again. One that is finished is not resumed: nothing is started,
    only the upload of its last checkpoint is made if it is missing.

    Args:
        attempt: of whether it is to resume; it closes all that it opened, whatever happens.
        config: of the run; trainer.max_restarts bounds the attempts.
        console: where a restart is reported.
        resume: of the first attempt.

    Raises:
        EngineError: if the trainer dies once more than trainer.max_restarts.
        ResourceError: if the missing upload of a finished run fails again.
    """
    if resume and (summary := finished(config)) is not None:
        console.note(
            f"{config.run_dir} is finished: {summary['num_steps']} steps are done, its model is in "
            f"{config.run_dir / 'model'}; to continue, raise num_steps"
        )
        upload_missing(config, Events(config.run_dir, console).tell)
        return summary
    most, num_restarts, last_error = config.trainer.max_restarts, 0, ""
    while True:
        try:
            return attempt(resume)
        except TrainerDied as error:
            words = "it died in the same way" if str(error) == last_error else str(error)
            if num_restarts == most:
                raise EngineError(
                    f"the trainer was restarted trainer.max_restarts={most} times, and has died again: "
                    f"{words}; fix the cause (for instance too little memory: see dmesg), then --resume"
                ) from error
            num_restarts += 1
            resume = bool(checkpoints(config.run_dir))
            place = "the last checkpoint" if resume else "the beginning, as there is no checkpoint yet"
            Events(config.run_dir, console).tell(
                "trainer_restarted", f"{words}; restart {num_restarts} of {most}, from {place}"
            )
            last_error = str(error)
