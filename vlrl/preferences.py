"""Preference learning with the RL trainer: pairs of completions, or completions with a label; reward models.

    rows ─► samples ─► groups: prompt ┬ chosen    +1   ─► micro-batches, each group whole ─► trainer (ZeRO-3)
                                      └ rejected  -1

The reference is the starting model: a frozen copy, or with lora the model with its adapters off.
`vlrl.algorithm.preferences.tokens` says how a pair's loss becomes its tokens'. Pairs of a run's own
completions are made by `vlrl train` (`vlrl.grpo`) with the same section.

A reward model is learned of pairs alike. Its head gives a score in the place of a log-probability, of one
token: the last that an engine is shown of a conversation. No reference takes part.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from vlrl.algorithm.credit import MaskFn, group_with_advantages, last_token
from vlrl.algorithm.preferences.tokens import PreferenceObjective, no_groups, preference_metrics
from vlrl.batch import Batch
from vlrl.config import Config
from vlrl.config.learning.policies import require_one_policy
from vlrl.config.learning.preferences import BRADLEY_TERRY, PreferencesConfig, bound_preference
from vlrl.data.preferences import LabelledCompletion, completions_of
from vlrl.errors import ConfigError
from vlrl.evaluate import heldout_samples
from vlrl.packing.layout import media_themselves
from vlrl.packing.options import PackOptions
from vlrl.packing.pack import pack
from vlrl.protocols import Processor
from vlrl.run.recovery import run_to_end
from vlrl.run.run import Clock, Run
from vlrl.sft import given_trajectory
from vlrl.tracking.console import TrainConsole
from vlrl.tracking.selection import is_evaluated
from vlrl.trainer.schedule import learning_rate
from vlrl.types import Group, ReferenceTurn, Sample, Trajectory


def train(
    config: Config | Mapping[str, Any], console: TrainConsole | None = None, *, resume: bool = False
) -> dict[str, object]:
    """Learn from preferences and return the run's summary, which is also written to summary.json.

    `vlrl.run.recovery.run_to_end` has the arguments, the errors, and what happens if the trainer dies.
    """
    return run_to_end(train_once, config, console, resume)


def train_once(config: Config, console: TrainConsole, resume: bool) -> dict[str, object]:
    """`train`, until it is done or something dies."""
    return _train_pairs(_with_section(config, PreferencesConfig()), console, resume)


def train_reward_model(
    config: Config | Mapping[str, Any], console: TrainConsole | None = None, *, resume: bool = False
) -> dict[str, object]:
    """Learn to score completions by pairs; takes, returns and raises what `train` does."""
    return run_to_end(train_reward_model_once, config, console, resume)


def train_reward_model_once(config: Config, console: TrainConsole, resume: bool) -> dict[str, object]:
    """`train_reward_model`, until it is done or something dies."""
    return _train_pairs(_with_section(config, PreferencesConfig(loss=BRADLEY_TERRY)), console, resume)


def _with_section(config: Config, default: PreferencesConfig) -> Config:
    """The config with `preferences`, by default these.

    Raises:
        ConfigError: for a loss that is one of reward models where the default is not, or the other way round;
            and for what the default does not read.
    """
    require_one_policy(config, "vlrl dpo")
    options = config.preferences or default
    if options.is_scored != default.is_scored:
        trains, command = ("a policy", "dpo") if default.is_scored else ("a reward model", "reward-model")
        raise ConfigError(
            f"preferences.loss={options.loss.name} trains {trains}; set preferences.loss={default.loss.name} "
            f"or train with `vlrl {command}`"
        )
    try:
        options.require_default(config.algorithm, config.rollout.temperature)
    except ValueError as error:
        raise ConfigError(str(error)) from error
    return config.model_copy(update={"preferences": options})


def _train_pairs(config: Config, console: TrainConsole, resume: bool) -> dict[str, object]:
    with Run(config, console, train=True, generate=False, resume=resume) as run:
        before = hold_out_before(run)
        for step in run.steps("preferences"):
            run.log(step, preference_step(run, step) | hold_out_during(run, step))
        after = hold_out(run, "after training", config.eval.num_samples)
        run.export_model()
        heldout = {
            f"{name.replace('/', '_')}_{when}": value
            for when, metrics in (("before", before), ("after", after))
            for name, value in metrics.items()
        }
        return run.write_summary(num_parameters=run.trainer.num_parameters, **heldout)


def preference_step(run: Run, step: int) -> dict[str, float]:
    """One step: the rows of a batch, each a pair or a labelled completion."""
    config, clock = run.config, Clock()
    with clock.measure("wait"):
        groups = preference_groups(run.stream.batch(step), run.processor, options_of(run))
    with clock.measure("train"):
        batch = pack(groups, media_themselves, PackOptions.of(config, generated=False))
        lr = learning_rate(config.optim, step, config.num_steps)
        objective = objective_of(run, batch)
        update, _ = run.trainer.step(batch, objective, lr)
    del update["policy/loss"]  # which is preference/loss
    metrics = {**update, **run.stream.metrics}
    if "kl" in bound_preference(objective.options).wanted:
        metrics["preference/kl"] = objective.kl
    num_tokens = sum(t.num_action_tokens for group in groups for t in group.trajectories)
    return metrics | clock.metrics(num_tokens)


def options_of(run: Run) -> PreferencesConfig:
    """The run's section."""
    return run.config.preferences or PreferencesConfig()


def objective_of(run: Run, batch: Batch) -> PreferenceObjective:
    """What a batch is trained towards; for a loss that asks for it with the KL of the present weights.

    KTO's z₀ (arXiv 2402.01306, §4.1): max(0, mean of log π/π_ref over completions of other rows), here over
    the whole step on all ranks, so that it depends neither on their number nor on how rows are packed.
    """
    options = options_of(run)
    if "kl" not in bound_preference(options).wanted:
        return PreferenceObjective(options)
    measured = run.trainer.measure(batch, PreferenceObjective(options))
    return PreferenceObjective(options, kl=max(0.0, measured.kl_of_others))


def preference_groups(
    samples: Sequence[Sample], processor: Processor, options: PreferencesConfig
) -> list[Group]:
    """What a loss of preferences is computed of: a group for each pair, or for each labelled completion.

    Beside a labelled completion stands one of the next row, with advantage 0, if the loss asks for the KL.

    Raises:
        DataError: for a row that is no pair, see `vlrl.data.preferences.completions_of`.
    """
    of_samples = [completions_of(sample, processor, options) for sample in samples]
    masks = [last_token] if options.is_scored else []
    if not options.is_unpaired:
        return [
            _group(sample, [(completion, completion.advantage) for completion in pair], masks)
            for sample, pair in zip(samples, of_samples, strict=True)
        ]
    # All first ones, then the second ones of pairs, so that the next completion is another row's.
    alone = [
        (sample, found[number])
        for number in range(2)
        for sample, found in zip(samples, of_samples, strict=True)
        if number < len(found)
    ]
    members = [[(completion, completion.advantage)] for _, completion in alone]
    if "kl" in bound_preference(options).wanted:
        for number, of_group in enumerate(members, start=1):
            of_group.append((alone[number % len(alone)][1], 0.0))
    return [_group(sample, of_group) for (sample, _), of_group in zip(alone, members, strict=True)]


def _group(
    sample: Sample, members: Sequence[tuple[LabelledCompletion, float]], masks: Sequence[MaskFn] = ()
) -> Group:
    """Completions of one prompt, each with its advantage."""
    trajectories = [_trajectory(sample, c, index) for index, (c, _) in enumerate(members)]
    return group_with_advantages(trajectories, [advantage for _, advantage in members], masks)


def _trajectory(sample: Sample, completion: LabelledCompletion, group_index: int) -> Trajectory:
    turn = ReferenceTurn(sample.prompt, sample.media, completion.token_ids)
    return given_trajectory(sample, [turn], completion.text, group_index)


def hold_out_before(run: Run) -> dict[str, float]:
    """Held-out preferences of the model as it was given; a resumed run takes those of its first start."""
    kept = run.config.run_dir / "before.json"
    if run.first_step and kept.is_file():
        return dict(json.loads(kept.read_text(encoding="utf-8")))
    before = hold_out(run, "before training", run.config.eval.num_samples)
    kept.write_text(json.dumps(before), encoding="utf-8")
    return before


def hold_out_during(run: Run, step: int) -> dict[str, float]:
    """Held-out metrics after a step, where eval.every asks for them."""
    if not is_evaluated(run.config, step):
        return {}
    return hold_out(run, f"after step {step + 1}", run.config.eval.during_samples)


def hold_out(run: Run, when: str, num_samples: int | None) -> dict[str, float]:
    """Preference accuracy, margin and rewards of the held-out rows; empty without any."""
    samples, sums = heldout_samples(run, num_samples), no_groups()
    if not samples:
        return {}
    with run.phases.measure("evaluate"):
        for batch in _heldout_batches(run, samples):
            sums = sums + run.trainer.measure(batch, objective_of(run, batch)).groups
    metrics = preference_metrics(sums, options_of(run))
    run.console.note(f"held-out preference accuracy {when}: {metrics['preference/accuracy']:.3f}")
    return {f"heldout/{name}": value for name, value in metrics.items()} | {
        "heldout/num_samples": float(len(samples))
    }


def _heldout_batches(run: Run, samples: Sequence[Sample]) -> Iterator[Batch]:
    size = options_of(run).batch_size
    for start in range(0, len(samples), size):
        groups = preference_groups(samples[start : start + size], run.processor, options_of(run))
        yield pack(groups, media_themselves, PackOptions.of(run.config, generated=False))
