"""What a run measures: every metric by name, with its meaning and unit."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import TypeVar

from vlrl.tracking.method_metrics import CRITIC, HELDOUT, PREFERENCES, Metric, describe_heldout

T = TypeVar("T")

TIME_PARTS = ("generate", "reward", "train", "sync", "wait")
"""The parts of a step's time, as `time_s/<part>`, in the order in which they happen."""

SOURCE_REWARD = "reward_by_source/"
"""Mean reward of one source is `reward_by_source/<name>`."""

POLICIES = "policies/"
"""What is measured of one of several policies is `policies/<name>/<number>`."""

BY_POLICY = {
    "reward_mean": Metric("Mean reward of its completions, also of one that is not trained"),
    "num_trained_tokens": Metric("Its trained tokens", "count"),
    "entropy": Metric("policy/entropy", "nats"),
    "mismatch": Metric("policy/sampler_mismatch", "nats"),
    "kl_reference": Metric("policy/kl_reference", "nats"),
}

GREEDY_REWARD = "baseline/greedy_reward"
"""Mean reward of the greedy completions of ReMax, which are no part of reward/mean."""

DROPPED = "groups/dropped_"
"""Groups that a filter dropped are `groups/dropped_<filter>`."""

BY_STALENESS = {
    "token_share": "Share of the trained tokens",
    "mismatch": "policy/sampler_mismatch",
    "ess": "off_policy/ess",
    "clip_fraction": "policy/clip_fraction",
    "limited_fraction": "off_policy/limited_fraction",
}
"""What is logged for the tokens of each staleness, as `off_policy/<name>_staleness<updates>`."""

EPISODE_COUNTS = (
    *("env_raised", "env_hung", "env_died", "episode_hung", "agent_raised"),
    *("replayed_episodes", "failed_episodes", "cut_off_episodes", "surplus_episodes"),
)
"""What is counted of a step's episodes, as `failures/<name>`."""


ENGINE_COUNTS = ("replaced_engines", "resubmitted_requests")
"""What is counted of the engines in a step, as `failures/<name>`."""

WORKER_COUNTS = ("replaced_workers",)
"""What is counted of the rollout workers in a step, as `failures/<name>`."""


NODES = "nodes/"
"""The health of machines, as `nodes/<host>/<gauge>`."""

NOT_REPEATED = ("time_s/", "throughput/", NODES)
"""Prefixes of what clocks and machines say: of all other metrics a seed gives the same values (law 8)."""


METRICS: Mapping[str, Metric] = {
    "reward/mean": Metric("Mean reward of the step's completions"),
    "reward/std": Metric("Standard deviation of reward over the step's completions"),
    "reward/zero_variance_groups": Metric(
        "Share of groups whose rewards are all equal but for rounding: they teach nothing without a critic",
        "fraction",
    ),
    GREEDY_REWARD: Metric(
        "Mean reward of the greedy completions that the others are compared with (ReMax); they are not part "
        "of reward/mean"
    ),
    "completion/num_tokens_mean": Metric("Mean length of a completion", "tokens"),
    "completion/truncated_fraction": Metric("Share of completions cut at rollout.max_tokens", "fraction"),
    "policy/entropy": Metric(
        "Mean entropy of the trainer's next-token distribution, over the trained tokens: groups without "
        "advantages are computed only if kl_coef or entropy_coef is above 0, or with a teacher or a critic",
        "nats",
    ),
    "policy/sampler_mismatch": Metric(
        "How far the trainer is from what sampled: KL(sampler ‖ trainer) over the trained tokens, k3 "
        "estimate; rounding alone if tokens are fresh",
        "nats",
    ),
    "policy/kl_reference": Metric(
        "KL to the reference, the starting model unless algorithm.reference lets it follow the policy; k3 "
        "estimate over the trained tokens",
        "nats",
    ),
    "distillation/reverse_kl": Metric(
        "KL(policy ‖ teacher), k1 estimate: mean of log π_policy - log π_teacher over the trained tokens",
        "nats",
    ),
    "policy/clip_fraction": Metric("Share of trained tokens whose probability ratio was clipped", "fraction"),
    "policy/kl_coef": Metric("Coefficient of the KL term, if algorithm.kl_adaptive lets it adapt"),
    "policy/entropy_coef": Metric(
        "Coefficient of the entropy bonus, if algorithm.entropy_adaptive lets it adapt"
    ),
    "policy/unselected_fraction": Metric(
        "Share of trained tokens that algorithm.selections left out of the policy's loss or held back",
        "fraction",
    ),
    "off_policy/staleness_mean": Metric("Mean staleness of the trained tokens", "updates"),
    "off_policy/ess": Metric(
        "Effective sample size of the trained tokens, (Σρ)² / (N Σρ²) of ρ = trainer / sampler", "fraction"
    ),
    "off_policy/limited_fraction": Metric(
        "Share of trained tokens whose importance weight was truncated or masked", "fraction"
    ),
    "policy/loss": Metric("Value of the minimised loss, without the routers'"),
    "policy/router_aux_loss": Metric("How unevenly a mixture uses its experts: top_k if all alike"),
    "parity/max_abs_logprob_diff": Metric(
        "Largest |trainer - sampler| log-probability of a fresh token before the step's first update; absent "
        "if no token was fresh",
        "nats",
    ),
    "parity/p999_abs_logprob_diff": Metric(
        "The same at the 99.9th percentile, to a tenth; bfloat16 is held to it", "nats"
    ),
    "parity/mean_abs_logprob_diff": Metric("The same on average; bfloat16 is held to it", "nats"),
    "optim/grad_norm": Metric("Global gradient norm before clipping"),
    "optim/skipped_fraction": Metric(
        "Share of the step's updates that were left out, as their gradients were not finite", "fraction"
    ),
    "optim/empty_fraction": Metric(
        "Share of the step's updates that were left out, as no token was trained", "fraction"
    ),
    "optim/lr": Metric("Learning rate"),
    "vision/cached_share": Metric(
        "Share of images whose features a frozen tower had computed before", "fraction"
    ),
    "throughput/tokens_per_s": Metric("Generated tokens per second of step time", "tokens/s"),
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
    "failures/replaced_workers": Metric(
        "Rollout workers whose process died and was replaced in the step", "count"
    ),
    "failures/resubmitted_requests": Metric(
        "Requests lost with an engine and sent again to the next one", "count"
    ),
    "groups/num_without_baseline": Metric(
        "Groups that are not trained, as fewer than two of their members have a score; where a greedy "
        "completion is the baseline, as it has none or no member has",
        "count",
    ),
    "groups/dropped_share": Metric(
        "Share of the groups generated for the batch that filters dropped", "fraction"
    ),
    "groups/dropped_empty": Metric("Groups dropped as too few of their episodes ended in time", "count"),
    "groups/num_stale": Metric("Groups generated again as their oldest tokens were too stale", "count"),
    "groups/num_running": Metric("Groups being generated when the batch was complete", "count"),
    "groups/num_waiting": Metric("Groups generated for later batches when the batch was complete", "count"),
    "replay/num_groups": Metric(
        "Earlier groups that the step trained again in place of groups without a signal; no other metric of "
        "rewards, completions or generated tokens counts them",
        "count",
    ),
    "replay/num_kept": Metric("Samples whose groups may be trained again by later steps", "count"),
    "replay/staleness_mean": Metric("Mean staleness of the oldest tokens of what was replayed", "updates"),
    "sampler/num_rows_seen": Metric("Rows of the adaptive source of which a group has been counted", "count"),
    "sampler/effective_num_rows": Metric(
        "Rows that an adaptive sampler chooses among: 1 / Σ P² of their probabilities P", "count"
    ),
    "sampler/pass_rate_mean": Metric("Mean estimated pass rate of the adaptive source's rows", "fraction"),
    "sampler/pass_rate_chosen": Metric("The same, weighted as rows are chosen", "fraction"),
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
    "time_s/generate": Metric("Generating completions", "s"),
    "time_s/reward": Metric("Scoring completions", "s"),
    "time_s/train": Metric("Forward, backward and optimizer", "s"),
    "time_s/sync": Metric("Moving the new weights into the engine", "s"),
    "time_s/wait": Metric("Waiting for data, and all that no other part counts", "s"),
    "time_s/step": Metric("The whole step", "s"),
    **HELDOUT,
    "sft/loss": Metric("Mean negative log-likelihood of the targets' tokens", "nats"),
    **CRITIC,
    **PREFERENCES,
    **{f"heldout/{name}": replace(m, meaning=f"{m.meaning}; held out") for name, m in PREFERENCES.items()},
    "preference/kl": Metric(
        "KTO's z₀: KL to the reference before the update, estimated with other rows' completions, at least 0",
        "nats",
    ),
}
"""Every metric the trainer logs under a fixed name; `policy/…`, `off_policy/…` and `optim/…` are means over a
step's updates."""

NODE_GAUGES: Mapping[str, Metric] = {
    "alive": Metric("1, or 0 if the node has left the cluster"),
    "cpu_load": Metric("Share of its cores that computed since the reading before", "fraction"),
    "memory_used": Metric("Share of its memory in use, of the container's where there is one", "fraction"),
    "object_store_used": Metric("Share of Ray's object store in use", "fraction"),
    "shared_memory_used": Metric("How full /dev/shm is, through which weights and images travel", "fraction"),
    "network_received_mib_per_s": Metric("What its network cards received since the reading before", "MiB/s"),
    "network_sent_mib_per_s": Metric("What they sent", "MiB/s"),
    "run_disk_used": Metric("How full the disk of the run's folder is", "fraction"),
    "run_disk_free_gib": Metric("What is free there", "GiB"),
    "tmp_disk_used": Metric("How full the disk of temporary files is", "fraction"),
    "tmp_disk_free_gib": Metric("What is free there", "GiB"),
    "gpu<n>_memory_used": Metric("Share of a GPU's memory in use", "fraction"),
    "gpu<n>_utilization": Metric("Share of the last second in which a GPU computed", "fraction"),
}
"""What is read of a node every 30 seconds, by the thread of `vlrl.cluster.node_monitor`."""

FAMILIES: Mapping[str, Metric] = {
    "reward/<part>": Metric("Mean of a named part of the reward"),
    f"{SOURCE_REWARD}<source>": Metric("Mean reward of a source's samples, where there are several sources"),
    **{
        f"{POLICIES}<policy>/{name}": replace(m, meaning=f"Of one of several policies: {m.meaning}")
        for name, m in BY_POLICY.items()
    },
    f"{DROPPED}<filter>": Metric("Groups that batch.filters dropped", "count"),
    "episode/<number>": Metric("Mean of a number in the environment's info at the end of an episode"),
    "judge/<model>/<number>": Metric("Requests, tokens, seconds and cost of a judge, in a step"),
    "heldout/judge/<model>/<number>": Metric("The same of an evaluation"),
    **{
        f"off_policy/{name}_staleness<updates>": Metric(f"{what}, of tokens of one age; _up: or older")
        for name, what in BY_STALENESS.items()
    },
    **{f"{NODES}<host>/{gauge}": metric for gauge, metric in NODE_GAUGES.items()},
}
"""Metrics whose names depend on the run; `describe` knows them too."""


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
    if match := re.fullmatch(r"off_policy/(\w+)_staleness(\d+)(_up)?", name):
        what, updates, above = match.groups()
        more = "or more " if above else ""
        return f"{BY_STALENESS[what]}, of tokens generated {updates} {more}updates ago"
    if name.removeprefix("heldout/").startswith("judge/"):
        _, model, what = name.removeprefix("heldout/").split("/", 2)
        return f"The judge {model}: {what.removeprefix('num_').replace('_', ' ')}"
    if name.startswith(POLICIES):
        _, policy, number = name.split("/", 2)
        return f"Policy {policy}: {BY_POLICY[number].meaning}" if number in BY_POLICY else ""
    if name.startswith(NODES):
        _, host, gauge = name.split("/", 2)
        if (known := NODE_GAUGES.get(re.sub(r"^gpu\d+_", "gpu<n>_", gauge))) is None:
            return ""
        return f"Node {host}, {gauge}: {known.meaning[0].lower()}{known.meaning[1:]}"
    if name.startswith("heldout/") and name not in METRICS:
        return describe_heldout(name)
    metric = METRICS.get(name)
    if metric is None:
        return ""
    return f"{metric.meaning} ({metric.unit})" if metric.unit else metric.meaning


def repeatable(values: Mapping[str, T]) -> dict[str, T]:
    """A step's metrics without those that differ between two runs of one seed."""
    return {name: value for name, value in values.items() if not name.startswith(NOT_REPEATED)}


def is_reward_part(name: str) -> bool:
    """True for `reward/<part>`, False for the reward's own statistics."""
    return name.startswith("reward/") and name not in METRICS
