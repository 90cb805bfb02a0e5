"""Supervised training with the RL trainer: every row's target is a completion of weight one."""

from __future__ import annotations

import numpy as np

from vlrl.config import Config
from vlrl.console import TrainConsole
from vlrl.pack import pack
from vlrl.protocols import Processor
from vlrl.run import Clock, Run, require_targets
from vlrl.schedule import learning_rate
from vlrl.session import Session
from vlrl.types import Generation, Group, Sample, Score, VersionSpan


def train(config: Config, console: TrainConsole, *, resume: bool = False) -> dict[str, object]:
    """Minimise the targets' negative log-likelihood and return the run's summary.

    Raises:
        VlrlError: with what is wrong, where, and the remedy.
        Interrupted: after a clean save, on Ctrl-C or SIGTERM.
    """
    with Run(config, console, train=True, generate=False, resume=resume) as run:
        console.phase("SFT", config.num_steps)
        metrics: dict[str, float] = {}
        with run.phases.measure("SFT"):
            for step in run.steps():
                metrics = sft_step(run, step)
                run.sinks.log(step, metrics)
                console.step(step, metrics)
        run.export_model()
        return run.write_summary(
            num_parameters=run.trainer.num_parameters, final_loss=metrics.get("sft/loss")
        )


def sft_step(run: Run, step: int) -> dict[str, float]:
    """One supervised step."""
    config, clock = run.config, Clock()
    with clock.measure("wait"):
        samples = run.stream.batch(step)
        require_targets(samples)
        groups = [supervised_group(sample, run.processor) for sample in samples]
    with clock.measure("train"):
        batch = pack(
            groups,
            run.processor.pixels,
            num_ranks=config.trainer.num_ranks,
            max_tokens=config.trainer.max_tokens_per_micro_batch,
            aggregation="token",
            max_completion_tokens=config.rollout.max_tokens,
            keep_zero_advantage=True,
        )
        lr = learning_rate(config.optim, step, config.num_steps)
        update, _, _ = run.trainer.step(batch, "sft", lr)
    num_tokens = sum(g.trajectories[0].num_action_tokens for g in groups)
    return {"sft/loss": update.pop("policy/loss"), **update, **clock.metrics(num_tokens)}


def supervised_group(sample: Sample, processor: Processor) -> Group:
    """A sample's target as a drawn completion: one trajectory of advantage 1."""
    session = Session(sample, group_index=0)
    target = processor.encode_target(sample.target or "")
    no_logprobs = np.zeros(len(target), np.float32)
    session.append_action(Generation(target, no_logprobs, (VersionSpan(0, 0, len(target)),), finished=True))
    trajectory = session.trajectory(completion=sample.target or "", outcome="ok", duration_s=0.0)
    trajectory.score = Score(1.0, {})
    return Group([trajectory], np.ones(1, np.float32))
