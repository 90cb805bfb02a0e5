"""What a run measures, and where the numbers go: metrics.jsonl always, TensorBoard and W&B by option."""

from __future__ import annotations

import json
import math
import os
import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from vlrl.errors import ConfigError
from vlrl.options import LoggingConfig

METRICS_FILE = "metrics.jsonl"
"""One flat JSON object per line, `step` first; a number that is not finite is null."""

TIME_PARTS = ("generate", "reward", "train", "sync", "wait")
"""The parts of a step's time, as `time_s/<part>`, in the order in which they happen."""

SOURCE_REWARD = "reward_by_source/"
"""Mean reward of one source is `reward_by_source/<name>`."""

DROPPED = "groups/dropped_"
"""Groups that a filter dropped are `groups/dropped_<filter>`."""

BY_LAG = {
    "token_share": "Share of the trained tokens",
    "mismatch": "policy/sampler_mismatch",
    "ess": "off_policy/ess",
    "clip_fraction": "policy/clip_fraction",
    "limited_fraction": "off_policy/limited_fraction",
}
"""What is logged of the tokens of each age, as `off_policy/<name>_lag<updates>`."""

EPISODE_COUNTS = (
    *("env_raised", "env_hung", "env_died", "episode_hung", "agent_raised"),
    *("replayed_episodes", "failed_episodes", "cut_off_episodes", "surplus_episodes"),
)
"""What is counted of a step's episodes, as `failures/<name>`."""


ENGINE_COUNTS = ("replaced_engines", "redrawn_requests")
"""What is counted of the engines in a step, as `failures/<name>`."""


@dataclass(frozen=True, slots=True)
class Metric:
    """What a number means, in one sentence, and its unit ("" for a pure number)."""

    meaning: str
    unit: str = ""


METRICS: Mapping[str, Metric] = {
    "reward/mean": Metric("Mean reward of the step's completions"),
    "reward/std": Metric("Standard deviation of reward over the step's completions"),
    "reward/zero_variance_groups": Metric(
        "Share of groups whose rewards are all equal but for rounding: they teach nothing", "fraction"
    ),
    "completion/num_tokens_mean": Metric("Mean length of a completion", "tokens"),
    "completion/truncated_fraction": Metric("Share of completions cut at rollout.max_tokens", "fraction"),
    "policy/entropy": Metric(
        "Mean entropy of the trainer's next-token distribution, over the trained tokens: groups without "
        "advantages are computed only if kl_coef or entropy_coef is above 0",
        "nats",
    ),
    "policy/sampler_mismatch": Metric(
        "How far the trainer is from what sampled: KL(sampler ‖ trainer) over the trained tokens, k3 "
        "estimate; rounding alone if tokens are fresh",
        "nats",
    ),
    "policy/kl_reference": Metric(
        "KL to the frozen starting model, k3 estimate over the trained tokens", "nats"
    ),
    "policy/clip_fraction": Metric("Share of trained tokens whose probability ratio was clipped", "fraction"),
    "off_policy/lag_mean": Metric("Mean age of the trained tokens", "updates"),
    "off_policy/ess": Metric(
        "Effective sample size of the trained tokens, (Σρ)² / (N Σρ²) of ρ = trainer / sampler", "fraction"
    ),
    "off_policy/limited_fraction": Metric(
        "Share of trained tokens whose importance weight was truncated or masked", "fraction"
    ),
    "policy/loss": Metric("Value of the minimised loss"),
    "parity/max_abs_logprob_diff": Metric(
        "Largest |trainer - sampler| log-probability of a fresh token before the step's first update; absent "
        "if no token was fresh",
        "nats",
    ),
    "optim/grad_norm": Metric("Global gradient norm before clipping"),
    "optim/skipped_fraction": Metric(
        "Share of the step's updates that were left out, as their gradients were not finite", "fraction"
    ),
    "optim/empty_fraction": Metric(
        "Share of the step's updates that were left out, as no token was trained", "fraction"
    ),
    "optim/lr": Metric("Learning rate"),
    "vision/cached_share": Metric(
        "Share of pictures whose features a frozen tower had given before", "fraction"
    ),
    "throughput/tokens_per_s": Metric("Drawn tokens per second of step time", "tokens/s"),
    "failures/reward": Metric("Completions that could not be scored; their groups are without them", "count"),
    "failures/env_raised": Metric(
        "Attempts at an episode whose environment raised or answered nonsense", "count"
    ),
    "failures/env_hung": Metric("Attempts whose environment was over its time limit", "count"),
    "failures/env_died": Metric("Attempts whose environment's process died", "count"),
    "failures/episode_hung": Metric("Attempts that took longer than episodes.timeout_s", "count"),
    "failures/agent_raised": Metric("Attempts whose agent raised", "count"),
    "failures/replayed_episodes": Metric("Episodes that did well after an attempt that failed", "count"),
    "failures/failed_episodes": Metric(
        "Episodes of which every attempt failed; they are left out of their groups", "count"
    ),
    "failures/cut_off_episodes": Metric("Episodes that were too slow and are left out", "count"),
    "failures/surplus_episodes": Metric("Redundant episodes that are left out", "count"),
    "failures/replaced_engines": Metric("Engines whose process died and was replaced in the step", "count"),
    "failures/redrawn_requests": Metric("Requests lost with an engine and drawn again by the next", "count"),
    "groups/num_without_baseline": Metric(
        "Groups that are not trained, as fewer than two of their members have a score", "count"
    ),
    "groups/dropped_share": Metric(
        "Share of the groups drawn for the batch that filters dropped", "fraction"
    ),
    "groups/dropped_empty": Metric("Groups dropped as too few of their episodes ended in time", "count"),
    "groups/num_stale": Metric("Groups drawn again as their oldest tokens were too old", "count"),
    "groups/num_running": Metric("Groups being drawn when the batch was whole", "count"),
    "groups/num_waiting": Metric("Groups drawn for later batches when the batch was whole", "count"),
    "episode/num_turns_mean": Metric("Mean number of actions of an episode", "turns"),
    "episode/return_mean": Metric("Mean sum of the environment's rewards"),
    "episode/success": Metric("Share of episodes in which the task was done", "fraction"),
    "episode/invalid_fraction": Metric("Share of actions that the environment could not read", "fraction"),
    "episode/num_ledgers_mean": Metric("Mean number of ledgers: 1 if no context was rewritten", "ledgers"),
    "episode/branched_fraction": Metric(
        "Share of episodes that branched off another or were branched off; absent if none", "fraction"
    ),
    "data/num_dropped_overlong": Metric(
        "Rows left out since their prompts are too long; others took their place", "count"
    ),
    "data/num_dropped_broken": Metric(
        "Rows left out since they or their media cannot be read (data.on_broken); others took their place",
        "count",
    ),
    "data/num_dropped_turns": Metric("Messages taken out of conversations so that they fit", "count"),
    "data/num_kept_overlong": Metric("Prompts beyond data.max_prompt_tokens that were kept", "count"),
    "time_s/generate": Metric("Drawing completions", "s"),
    "time_s/reward": Metric("Scoring completions", "s"),
    "time_s/train": Metric("Forward, backward and optimizer", "s"),
    "time_s/sync": Metric("Moving the new weights into the engine", "s"),
    "time_s/wait": Metric("Waiting for data, and whatever is none of the other parts", "s"),
    "time_s/step": Metric("The whole step", "s"),
    "heldout/accuracy_greedy": Metric("Held-out accuracy after the step, likeliest tokens", "fraction"),
    "heldout/accuracy_sampled": Metric("Held-out accuracy after the step, training temperature", "fraction"),
    "sft/loss": Metric("Mean negative log-likelihood of the targets' tokens", "nats"),
}
"""Every metric the trainer logs; `policy/…`, `off_policy/…` and `optim/…` are means over a step's updates.
Any other `reward/<name>` is the mean of that named part of the reward, and `reward_by_source/<name>` the mean
reward of a source, where there are several."""


def describe(name: str) -> str:
    """Meaning and unit of a metric in words; "" for one that is not ours."""
    if is_reward_part(name):
        return f"Mean of the reward's part {name.removeprefix('reward/')!r}"
    if name.startswith(SOURCE_REWARD):
        return f"Mean reward of samples from {name.removeprefix(SOURCE_REWARD)!r}"
    if name.startswith("episode/") and name not in METRICS:
        return f"Mean of the environment's number {name.removeprefix('episode/')!r} at the end of an episode"
    if name.startswith(DROPPED) and name not in METRICS:
        return f"Groups that batch.filters dropped by {name.removeprefix(DROPPED)!r} (count)"
    if match := re.fullmatch(r"off_policy/(\w+)_lag(\d+)(_up)?", name):
        what, lag, above = match.groups()
        return f"{BY_LAG[what]}, of tokens drawn {lag} {'or more ' if above else ''}updates ago"
    if name.removeprefix("heldout/").startswith("judge/"):
        _, model, what = name.removeprefix("heldout/").split("/", 2)
        return f"The judge {model}: {what.removeprefix('num_').replace('_', ' ')}"
    metric = METRICS.get(name)
    if metric is None:
        return ""
    return f"{metric.meaning} ({metric.unit})" if metric.unit else metric.meaning


def is_reward_part(name: str) -> bool:
    """True for `reward/<part>`, False for the reward's own statistics."""
    return name.startswith("reward/") and name not in METRICS


class MetricSinks:
    """Writes every step's numbers to all sinks of a run.

    A run that resumes at step k first drops the lines with step ≥ k, so that its file equals that of a
    run which was never stopped. W&B cannot forget: there the repeated steps keep their first values.
    """

    def __init__(self, run_dir: Path, config: LoggingConfig, *, resume_step: int | None = None) -> None:
        """Open the sinks.

        Args:
            run_dir: the run's folder; made if missing.
            config: which sinks.
            resume_step: first step that will be logged; None starts the files anew.

        Raises:
            ConfigError: if W&B is asked for and not installed.
        """
        first_step = resume_step or 0
        run_dir.mkdir(parents=True, exist_ok=True)
        # W&B goes first: if it is missing, nothing has been touched yet.
        self._wandb = _open_wandb(run_dir, config.wandb_project, first_step) if config.wandb_project else None
        self._tensorboard = _open_tensorboard(run_dir, first_step) if config.tensorboard else None
        path = run_dir / METRICS_FILE
        drop_from_step(path, first_step)
        # Line-buffered: what a step logged is with the operating system before the next step begins.
        self._file = path.open("a", encoding="utf-8", buffering=1)

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Record the numbers of a step; may be called more than once for a step."""
        numbers = {name: float(value) for name, value in values.items() if name != "step"}
        line = {"step": step} | {n: v if math.isfinite(v) else None for n, v in numbers.items()}
        self._file.write(json.dumps(line, allow_nan=False) + "\n")
        if self._tensorboard is not None:
            for name, value in numbers.items():
                self._tensorboard.add_scalar(name, value, step)
        if self._wandb is not None:
            self._wandb.log(numbers, step=step)

    def close(self) -> None:
        """Flush and close everything; safe to call twice."""
        self._file.close()
        if self._tensorboard is not None:
            self._tensorboard.close()
        if self._wandb is not None:
            self._wandb.finish()
        self._tensorboard = self._wandb = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def drop_from_step(path: Path, step: int) -> None:
    """Remove the lines of a JSONL file whose `step` is at or past `step`, and any torn line.

    Written aside, then renamed: a kill leaves the old file or the new one. A missing file stays missing.
    """
    if not path.is_file():
        return
    kept = path.with_name(path.name + ".part")
    with path.open(encoding="utf-8") as source, kept.open("w", encoding="utf-8") as target:
        for line in source:
            record = _parse(line)
            if record is not None and record["step"] < step:
                target.write(line)
    os.replace(kept, path)


def read_metrics(path: Path) -> list[dict[str, float | None]]:
    """The steps of a metrics.jsonl in order, one dict per step; torn lines are skipped."""
    steps: dict[int, dict[str, float | None]] = {}
    if path.is_file():
        with path.open(encoding="utf-8") as file:
            for line in file:
                record = _parse(line)
                if record is not None:
                    steps.setdefault(record["step"], {}).update(record)
    return [steps[step] for step in sorted(steps)]


def _parse(line: str) -> dict[str, Any] | None:
    """A whole line with a step, or None: a kill can cut the last line short."""
    if not line.endswith("\n"):
        return None
    try:
        record = json.loads(line)
    except ValueError:
        return None
    return record if isinstance(record, dict) and isinstance(record.get("step"), int) else None


def _open_tensorboard(run_dir: Path, first_step: int) -> Any:
    from torch.utils.tensorboard import SummaryWriter

    # purge_step hides what an interrupted run wrote at or past it.
    return SummaryWriter(str(run_dir / "tensorboard"), purge_step=first_step or None, flush_secs=10)


def _open_wandb(run_dir: Path, project: str, first_step: int) -> Any:
    try:
        import wandb
    except ImportError as error:
        raise ConfigError(
            f"logging.wandb_project={project!r} needs Weights & Biases: pip install vlrl[wandb], "
            "or set logging.wandb_project=null"
        ) from error
    id_file = run_dir / "wandb_id"
    if not (first_step and id_file.is_file()):
        id_file.write_text(uuid.uuid4().hex[:12], encoding="utf-8")
    return wandb.init(
        project=project,
        name=run_dir.name,
        dir=str(run_dir),
        id=id_file.read_text(encoding="utf-8"),
        resume="allow",
    )
