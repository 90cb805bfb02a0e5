"""Trainers for Python programs: one config tree, given as arguments."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any, TypeAlias, Unpack

from vlrl.config import Config, parse_config
from vlrl.config.options import ModelConfig, RewardConfig
from vlrl.errors import ConfigError
from vlrl.library.result import TrainResult
from vlrl.library.sections import Sections
from vlrl.library.sources import Source, source_of
from vlrl.tracking.console import Callbacks, TrainConsole

Model: TypeAlias = str | Path | Mapping[str, Any] | ModelConfig
"""A hub name, a folder, or the section `model`."""
StepFn: TypeAlias = Callable[[int, Mapping[str, float]], object]
RolloutsFn: TypeAlias = Callable[[int, list[dict[str, Any]]], object]
Reward: TypeAlias = Callable[..., Any] | str | Mapping[str, Any] | RewardConfig
"""A function of completion and answer, a registered name, or an entry of `rewards` with weight and options,
whose name may be a function."""


class _Trainer(ABC):
    """What the trainers have in common.

    Attributes:
        config: checked; `vlrl.config` has its sections.
    """

    config: Config

    def __init__(self, tree: Mapping[str, Any], callbacks: Callbacks) -> None:
        self.config, self._callbacks = parse_config(dict(tree), source=type(self).__name__), callbacks
        if callbacks.on_rollouts is not None and self.config.logging.rollouts.every == 0:
            raise ConfigError("on_rollouts is given, and logging.rollouts.every=0 keeps none; set it to 1")
        if callbacks.on_eval is not None and not self.config.data.eval:
            raise ConfigError("on_eval is given, and there are no held-out rows; give eval_rows")

    def train(self, *, resume: bool = False) -> TrainResult:
        """Train to the end, in a script, a thread or a notebook, and return metrics and model.

        Without a name (`run={"name": …}`) the run takes the first free one in run.dir: grpo, grpo-2, …

        Args:
            resume: go on from the last checkpoint of the run of that name.

        Raises:
            VlrlError: with what is wrong, where, and the remedy.
            Interrupted: after a clean save, on Ctrl-C or SIGTERM.
        """
        config = self._named(resume)
        with TrainConsole(config.run.name, config.num_steps, callbacks=self._callbacks) as console:
            return TrainResult(config, self._run(config, console, resume))

    @abstractmethod
    def _run(self, config: Config, console: TrainConsole, resume: bool) -> dict[str, object]:
        """Train and return the summary."""

    def _named(self, resume: bool) -> Config:
        if resume and "name" not in self.config.run.model_fields_set:
            raise ConfigError("resume=True needs the run's name; give run={'name': …}")
        return first_free(self.config, type(self).__name__.lower())


def first_free(config: Config, base: str) -> Config:
    """The config with the first free name of a run, such as grpo-2, where it was given none."""
    run = config.run
    if "name" in run.model_fields_set:
        return config
    names = (base if number == 1 else f"{base}-{number}" for number in count(1))
    name = next(name for name in names if not (run.dir / name).exists())
    return config.model_copy(update={"run": run.model_copy(update={"name": name})})


class GRPO(_Trainer):
    """Train by GRPO, or with `algorithm` by its relatives, on rows with rewards.

    Example:
        def score(completion, answer):
            return float(completion.strip() == answer)

        rows = [{"prompt": "How many cats?", "image": Image.open("cats.png"), "answer": "2"}, …]
        trainer = GRPO("Qwen/Qwen2.5-VL-3B-Instruct", rows, score, num_steps=100, optim={"lr": 1e-6})
        result = trainer.train()
    """

    def __init__(
        self,
        model: Model,
        rows: Source | None = None,
        rewards: Reward | Sequence[Reward] = (),
        *,
        eval_rows: Source | None = None,
        on_step: StepFn | None = None,
        on_rollouts: RolloutsFn | None = None,
        on_eval: StepFn | None = None,
        **sections: Unpack[Sections],
    ) -> None:
        """Check everything that can be checked without loading the model.

        Args:
            model: the policy to start from.
            rows: to train on, in any layout that docs/data.md lists. To mix several sources, give
                data={"train": […]} instead.
            rewards: one or several; may be left out for rows with rewards of their own, such as `episodes`.
            eval_rows: held-out rows, evaluated before and after training, and every eval.every steps.
            on_step: called with a step's number, counted from 0, and its metrics.
            on_rollouts: called with a step's number and its rollouts, a mapping each.
            on_eval: called with the number of updates so far and the held-out metrics.
            sections: all other keys of a config.

        Raises:
            ConfigError: for a wrong value, an unknown key (naming the nearest), and an object that cannot be
                sent to other processes.
        """
        tree = {**_tree(model, rows, eval_rows, sections), "rewards": reward_list(rewards)}
        super().__init__(tree, Callbacks(on_step, on_rollouts, on_eval))

    def _run(self, config: Config, console: TrainConsole, resume: bool) -> dict[str, object]:
        from vlrl import grpo

        return grpo.train(config, console, resume=resume)


class SFT(_Trainer):
    """Supervised training on the rows' targets: the assistant's last turn, `completion` or `target`."""

    def __init__(
        self,
        model: Model,
        rows: Source | None = None,
        *,
        on_step: StepFn | None = None,
        **sections: Unpack[Sections],
    ) -> None:
        """Check everything that can be checked without loading the model; see `GRPO`."""
        super().__init__(_tree(model, rows, None, sections), Callbacks(on_step))

    def _run(self, config: Config, console: TrainConsole, resume: bool) -> dict[str, object]:
        from vlrl import sft

        return sft.train(config, console, resume=resume)


class DPO(_Trainer):
    """Preference learning on rows of pairs (`chosen`, `rejected`), or with `preferences` by IPO or KTO."""

    def __init__(
        self,
        model: Model,
        rows: Source | None = None,
        *,
        eval_rows: Source | None = None,
        on_step: StepFn | None = None,
        **sections: Unpack[Sections],
    ) -> None:
        """Check everything that can be checked without loading the model; see `GRPO`."""
        super().__init__(_tree(model, rows, eval_rows, sections), Callbacks(on_step))

    def _run(self, config: Config, console: TrainConsole, resume: bool) -> dict[str, object]:
        from vlrl import preferences

        return preferences.train(config, console, resume=resume)


def _tree(model: Model, rows: Source | None, eval_rows: Source | None, sections: Sections) -> dict[str, Any]:
    """A config's tree.

    Raises:
        ConfigError: for rows that are given twice, or not at all.
    """
    data = dict(sections.get("data", {}))
    for split, name, given in (("train", "rows", rows), ("eval", "eval_rows", eval_rows)):
        if given is not None and split in data:
            raise ConfigError(f"{name} and data[{split!r}] are both given; leave one of them out")
        if given is not None:
            data[split] = source_of(given)
    if "train" not in data:
        raise ConfigError("there are no rows to train on; give rows, or data={'train': …}")
    return {**sections, "model": model_section(model), "data": data}


def model_section(model: Model) -> Mapping[str, Any] | ModelConfig:
    """The section `model` of what was given for it."""
    return {"path": str(model)} if isinstance(model, str | Path) else model


def reward_list(rewards: Reward | Sequence[Reward]) -> list[Reward]:
    """The entries of `rewards`: one, or several."""
    return list(rewards) if isinstance(rewards, Sequence) and not isinstance(rewards, str) else [rewards]
