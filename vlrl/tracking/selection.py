"""Which evaluation was the best one so far, and whether training ends early because of it."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from vlrl.config import Config
from vlrl.errors import ConfigError

BEST_LINK = "best"
"""RUN/best is a link to the model of the best checkpoint, with eval.keep_best."""


def is_evaluated(config: Config, step: int) -> bool:
    """Whether there is an evaluation after step number `step`, counted from 0, in training.

    After the last step training has ended; it is evaluated then only to be compared with the others.
    """
    options, is_last = config.eval, step + 1 == config.num_steps
    return options.every > 0 and (step + 1) % options.every == 0 and (options.selects or not is_last)


def checkpoint_name(num_updates: int) -> str:
    """The folder of the checkpoint after so many weight updates, in RUN/checkpoints and at a URL."""
    return f"step_{num_updates:06d}"


class BestWeights:
    """The best value of eval.best_metric, and how many evaluations there were since.

    Attributes:
        best: its value; None before the first evaluation.
        best_step: weight updates before that evaluation; None likewise.
        num_since: evaluations since then.
        last_step: weight updates before the last evaluation.
    """

    def __init__(self, config: Config) -> None:
        """Know of no evaluation yet.

        Raises:
            ConfigError: if evaluations are to select, and there are none.
        """
        self._options = options = config.eval
        if options.selects and not config.data.eval:
            raise ConfigError(
                "eval.keep_best, eval.patience and eval.stop_at need held-out rows; name them in data.eval"
            )
        self.best: float | None = None
        self.best_step: int | None = None
        self.num_since, self.last_step = 0, 0

    def restore(self, state: Mapping[str, Any] | None) -> None:
        """Go on from a checkpoint's state; None is one that was written without."""
        if state is not None:
            self.best, self.best_step = state["best"], state["best_step"]
            self.num_since, self.last_step = state["num_since"], state["last_step"]

    def state(self) -> dict[str, Any]:
        """What `restore` takes."""
        names = ("best", "best_step", "num_since", "last_step")
        return {name: getattr(self, name) for name in names}

    def note(self, num_updates: int, metrics: Mapping[str, float], tell: Callable[[str], None]) -> None:
        """Note an evaluation, if these metrics have one.

        Args:
            num_updates: weight updates before it.
            metrics: of a step.
            tell: called with a sentence if it is the best one.

        Raises:
            ConfigError: if the evaluation has no eval.best_metric.
        """
        name = self._options.best_metric
        measured = sorted(key for key in metrics if key.startswith("heldout/"))
        if not self._options.selects or not measured:
            return
        if name not in metrics:
            raise ConfigError(
                f"eval.best_metric={name!r}: an evaluation has no such metric; "
                f"there are {', '.join(measured)}"
            )
        value, self.last_step = metrics[name], num_updates
        if math.isnan(value) or not self._is_better(value):
            self.num_since += 1
            return
        self.best, self.best_step, self.num_since = value, num_updates, 0
        tell(f"after step {num_updates}: {name} is {value:.4g}, the best so far")

    @property
    def ending(self) -> str:
        """Why training ends early; "" if it goes on."""
        options, name = self._options, self._options.best_metric
        if self.best is None:
            return ""
        if options.stop_at is not None and not self._is_short_of(options.stop_at):
            return f"{name} reached eval.stop_at={options.stop_at:g} after step {self.best_step}"
        if options.patience is not None and self.num_since >= options.patience:
            return (
                f"{name} was best after step {self.best_step}, and no better in {self.num_since} evaluations "
                "since (eval.patience)"
            )
        return ""

    def must_save(self, num_updates: int) -> bool:
        """Whether a checkpoint is due after so many updates: of the best weights, or as training ends."""
        is_best = self._options.keep_best and self.best_step == num_updates
        return self.last_step == num_updates and (is_best or bool(self.ending))

    def best_checkpoint(self, run_dir: Path) -> Path | None:
        """The checkpoint that is kept as the best one; None without eval.keep_best or an evaluation."""
        if not self._options.keep_best or self.best_step is None:
            return None
        return run_dir / "checkpoints" / checkpoint_name(self.best_step)

    def link(self, run_dir: Path) -> None:
        """Let RUN/best lead to the model of the best checkpoint."""
        folder = self.best_checkpoint(run_dir)
        if folder is None or not folder.is_dir():
            return
        aside = run_dir / f".{BEST_LINK}.part"
        aside.unlink(missing_ok=True)
        aside.symlink_to(folder.relative_to(run_dir) / "model")
        os.replace(aside, run_dir / BEST_LINK)

    def summary(self) -> dict[str, Any]:
        """What summary.json says of it; nothing without a selection."""
        if not self._options.selects or self.best is None:
            return {}
        return {"selection": self.state(), "ended_early": self.ending or None}

    def _is_short_of(self, target: float) -> bool:
        assert self.best is not None
        return self.best > target if self._options.lower_is_better else self.best < target

    def _is_better(self, value: float) -> bool:
        if self.best is None:
            return True
        return value < self.best if self._options.lower_is_better else value > self.best
