"""Published algorithms as keys of the algorithm's section; docs/papers.md has how they differ from papers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple


class Preset(NamedTuple):
    """Keys of `algorithm` and what they make.

    Attributes:
        paper: where it is from.
        meaning: in a sentence.
        keys: of the section.
        beside: what of the paper is set elsewhere in a config; empty if nothing is.
    """

    paper: str
    meaning: str
    keys: Mapping[str, Any]
    beside: str = ""


PLAIN_CLIP = {"clip_low": 0.2, "clip_high": 0.2, "dual_clip": None}
"""PPO's, with nothing added."""
HIGHER_CLIP = {"clip_low": 0.2, "clip_high": 0.28, "dual_clip": None}
"""DAPO's."""

PRESETS: Mapping[str, Preset] = {
    "grpo": Preset(
        "arXiv 2402.03300",
        "rewards against the group's mean in units of its deviation, clipped ratios, KL to the start",
        {"aggregation": "sequence", **PLAIN_CLIP, "kl_coef": 0.04},
    ),
    "dr_grpo": Preset(
        "arXiv 2503.20783",
        "GRPO without its two biases: no deviation, a constant in place of each length, no KL",
        {"scale_by_std": False, "aggregation": "constant", **PLAIN_CLIP},
    ),
    "dapo": Preset(
        "arXiv 2503.14476",
        "GRPO with a higher upper bound and the mean over tokens, without KL",
        {"aggregation": "token", **HIGHER_CLIP},
        "dynamic sampling is batch.filters=[{name: zero_variance}], its length penalty soft_overlong",
    ),
    "gspo": Preset(
        "arXiv 2507.18071",
        "one ratio a sequence, the geometric mean of its tokens', clipped as a whole",
        {"loss": "gspo", "aggregation": "sequence"},
    ),
    "gspo_token": Preset(
        "arXiv 2507.18071, Eq. 13",
        "GSPO whose tokens may have advantages of their own, as with credit by turn",
        {"loss": "gspo_token", "aggregation": "sequence"},
    ),
    "gmpo": Preset(
        "arXiv 2507.20673",
        "the geometric mean of clipped token ratios",
        {"loss": "gmpo", "aggregation": "sequence"},
    ),
    "cispo": Preset(
        "arXiv 2506.13585",
        "the log-likelihood weighted by a ratio that is cut but never stops a token",
        {"loss": "cispo", "aggregation": "token"},
    ),
    "sapo": Preset(
        "arXiv 2511.20347",
        "a smooth gate around a ratio of 1 in place of clipping",
        {"loss": "sapo", "aggregation": "sequence"},
    ),
    "rloo": Preset(
        "arXiv 2402.14740",
        "REINFORCE of whole completions, each against the mean of the others",
        {"credit": "rloo", "loss": "policy_gradient", "aggregation": "constant"},
    ),
    "remax": Preset(
        "arXiv 2310.10505",
        "REINFORCE of whole completions, each against the greedy completion of its prompt",
        {"credit": "remax", "loss": "policy_gradient", "aggregation": "constant"},
        "the paper has rollout.group_size=1; its KL is kl_coef with kl_in=reward",
    ),
    "opo": Preset(
        "arXiv 2505.23585",
        "REINFORCE against the mean reward by length, which has the least variance",
        {"credit": "opo", "loss": "policy_gradient", "aggregation": "constant"},
    ),
    "gpg": Preset(
        "arXiv 2504.02546",
        "REINFORCE against the group's mean, averaged over tokens",
        {"scale_by_std": False, "loss": "policy_gradient", "aggregation": "token"},
        "its factor for groups without a signal is 1 with batch.filters=[{name: zero_variance}]",
    ),
    "reinforce_pp": Preset(
        "arXiv 2501.03262",
        "rewards in units of the whole batch's deviation, without a group's baseline",
        {"credit": "reward", "normalize": "batch", "aggregation": "token", **PLAIN_CLIP},
        "its KL is kl_coef with kl_in=reward",
    ),
    "reinforce_pp_baseline": Preset(
        "arXiv 2501.03262",
        "rewards against the group's mean in units of the whole batch's deviation",
        {"scale_by_std": False, "normalize": "batch", "aggregation": "token", **PLAIN_CLIP},
        "its KL is kl_coef with kl_estimator=k2",
    ),
    "gdpo": Preset(
        "arXiv 2601.05242",
        "each reward normalised by itself before they are added; name them in credit.options.rewards",
        {"credit": "gdpo", "normalize": "batch", "aggregation": "token", **PLAIN_CLIP},
    ),
    "pass_at_k": Preset(
        "arXiv 2508.10751",
        "pays k completions for the best of them, so that a policy keeps exploring",
        {"credit": "pass_at_k", "aggregation": "token", **HIGHER_CLIP},
    ),
    "raft": Preset(
        "arXiv 2304.06767",
        "imitates the best completion of each group, generated afresh in every step",
        {"credit": "best_of", "loss": "policy_gradient", "aggregation": "token"},
        "one round of generating and then imitating is the command vlrl raft",
    ),
    "ppo": Preset(
        "arXiv 1707.06347, 1506.02438",
        "GAE by a critic that is trained beside the policy, clipped ratios; groups may be of one",
        {"credit": "gae", "critic": {}, "normalize": "batch", "aggregation": "token", **PLAIN_CLIP},
        "RLHF's KL is kl_coef with kl_in=reward",
    ),
}
"""Name → what it sets."""

FUNCTIONS = ("credit", "loss")


def expanded(preset: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """A preset's keys under those that were given; a function's options alone keep the preset's function."""
    merged = {**preset, **given}
    for key in FUNCTIONS:
        own = given.get(key)
        if isinstance(own, Mapping) and "name" not in own and key in preset:
            merged[key] = {"name": preset[key], **own}
    return merged
