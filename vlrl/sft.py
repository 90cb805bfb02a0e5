"""Supervised training with the RL trainer: every row's target is a completion of weight one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from vlrl.algorithm.credit import group_with_advantages
from vlrl.config import Config
from vlrl.config.learning.policies import require_one_policy
from vlrl.data.run_data import require_targets
from vlrl.errors import ConfigError
from vlrl.packing.layout import media_themselves
from vlrl.packing.options import PackOptions
from vlrl.packing.pack import pack
from vlrl.protocols import Processor
from vlrl.rollout.session import Session
from vlrl.run.recovery import run_to_end
from vlrl.run.run import Clock, Run
from vlrl.tracking.console import TrainConsole
from vlrl.tracking.sinks import read_metrics
from vlrl.trainer.schedule import learning_rate
from vlrl.types import Generation, Group, ReferenceTurn, Sample, Score, Trajectory, VersionSpan

WINDOW = 10
"""Steps that sft.until_loss averages over: batches differ."""

TrainOn = Literal["assistant", "last"]


def train(
    config: Config | Mapping[str, Any], console: TrainConsole | None = None, *, resume: bool = False
) -> dict[str, object]:
    """Minimise the targets' negative log-likelihood and return the run's summary.

    `vlrl.run.recovery.run_to_end` has the arguments, the errors, and what happens if the trainer dies.
    """
    return run_to_end(train_once, config, console, resume)


def train_once(config: Config, console: TrainConsole, resume: bool) -> dict[str, object]:
    """`train`, until it is done or something dies."""
    config = without_other_models(config)
    require_no_preferences(config)
    with Run(config, console, train=True, generate=False, resume=resume) as run:
        metrics: dict[str, float] = {}
        earlier = read_metrics(config.run_dir / "metrics.jsonl")  # of a run that is resumed
        losses = [float(values["sft/loss"] or 0.0) for values in earlier]
        for step in run.steps("SFT"):
            metrics = sft_step(run, step)
            run.log(step, metrics)
            losses.append(metrics["sft/loss"])
            if has_reached(losses, config.sft.until_loss):
                break
        run.export_model()
        return run.write_summary(
            num_parameters=run.trainer.num_parameters, final_loss=metrics.get("sft/loss")
        )


def without_other_models(config: Config) -> Config:
    """The config of a supervised run: a teacher or a critic would only take memory."""
    nobody = {"teacher": None, "critic": None}
    return config.model_copy(update={"algorithm": config.algorithm.model_copy(update=nobody)})


def require_no_preferences(config: Config) -> None:
    """Raise ConfigError for sections that only `vlrl dpo` and `vlrl train` read."""
    require_one_policy(config, "vlrl sft")
    if config.preferences is not None:
        raise ConfigError(
            "the config has `preferences`, which supervised training has no use for; train with `vlrl dpo`, "
            "or set preferences=null to imitate the chosen completions"
        )


def has_reached(losses: Sequence[float], until_loss: float | None) -> bool:
    """True once the mean of the last steps' losses, in nats a token, is at most the limit."""
    recent = losses[-WINDOW:]
    return until_loss is not None and len(recent) == WINDOW and sum(recent) / WINDOW <= until_loss


def sft_step(run: Run, step: int) -> dict[str, float]:
    """One supervised step."""
    config, clock = run.config, Clock()
    with clock.measure("wait"):
        samples = run.stream.batch(step)
        require_targets(samples)
        groups = [supervised_group(sample, run.processor, config.sft.train_on) for sample in samples]
    with clock.measure("train"):
        batch = pack(groups, media_themselves, PackOptions.of(config, generated=False))
        lr = learning_rate(config.optim, step, config.num_steps)
        update, _ = run.trainer.step(batch, "sft", lr)
    num_tokens = sum(g.trajectories[0].num_action_tokens for g in groups)
    loss = {"sft/loss": update.pop("policy/loss")}
    return {**loss, **update, **run.stream.metrics, **clock.metrics(num_tokens)}


def supervised_group(sample: Sample, processor: Processor, train_on: TrainOn = "assistant") -> Group:
    """A sample's assistant turns as if they were generated: one trajectory of advantage 1.

    Args:
        sample: with a target, which is the last turn; earlier ones are in its messages.
        processor: spells the turns.
        train_on: every assistant's turn, or only the last, all else being context.
    """
    if train_on == "last":
        action_ids = processor.encode_target(sample.target or "", sample.prompt.opened)
        turns = [ReferenceTurn(sample.prompt, sample.media, action_ids)]
    else:
        turns = processor.reference_turns(sample)
    return group_with_advantages([given_trajectory(sample, turns, sample.target or "")], [1.0])


def given_trajectory(
    sample: Sample, turns: Sequence[ReferenceTurn], completion: str, group_index: int = 0
) -> Trajectory:
    """Turns that nobody generated as if they were: a trajectory with a score.

    Args:
        sample: that they are of.
        turns: at least one.
        completion: the last turn's text.
        group_index: which of its group's.
    """
    session = Session(replace(sample, prompt=turns[0].context, media=turns[0].media), group_index)
    for index, turn in enumerate(turns):
        if index:
            session.append_observation(turn.context, turn.media)
        count = len(turn.action_ids)
        no_logprobs = np.zeros(count, np.float32)
        session.append_action(
            Generation(turn.action_ids, no_logprobs, (VersionSpan(0, 0, count),), finished=True)
        )
    trajectory = session.trajectory(completion=completion, outcome="ok", duration_s=0.0)
    trajectory.score = Score(1.0, {})
    return trajectory
