"""What is logged of methods that not every run has: preferences, reward models, critics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Metric:
    """What a number means, in one sentence, and its unit ("" for a pure number)."""

    meaning: str
    unit: str = ""


PREFERENCES: Mapping[str, Metric] = {
    "preference/loss": Metric("Mean loss of pairs, or of labelled completions"),
    "preference/accuracy": Metric(
        "Share of pairs whose chosen completion has the higher implicit reward, β log π/π_ref, or score of a "
        "reward model, or of labelled completions on the right side of the KL; a tie, as before DPO's first "
        "update, is half",
        "fraction",
    ),
    "preference/margin": Metric(
        "Mean implicit reward, or score, of chosen completions minus that of rejected ones"
    ),
    "preference/chosen_reward": Metric(
        "Mean implicit reward, or score, of chosen, or desirable, completions"
    ),
    "preference/rejected_reward": Metric("The same of rejected, or undesirable, ones"),
    "preference/mean_reward": Metric("Mean score that a reward model gives to both completions of pairs"),
    "preference/chosen_logprob": Metric("Mean log-probability of a whole chosen completion", "nats"),
    "preference/rejected_logprob": Metric("The same of a rejected one", "nats"),
}
"""Of preference learning; held-out ones are `heldout/preference/…`."""

CRITIC: Mapping[str, Metric] = {
    "critic/loss": Metric("Mean loss of the critic's values over the step's updates of it"),
    "critic/clip_fraction": Metric(
        "Share of values that algorithm.critic.clip held, over the step's updates", "fraction"
    ),
    "critic/explained_variance": Metric(
        "1 - Var(return - value) / Var(return) before the step's updates: 1 foresees every return, 0 none of "
        "their differences; absent if all returns are equal"
    ),
    "critic/value_mean": Metric("Mean value before the step's updates"),
    "critic/return_mean": Metric("Mean λ-return, which values are held against"),
}
"""Of a critic."""

HELDOUT = {
    "heldout/accuracy_greedy": Metric("Held-out accuracy after the step, likeliest tokens", "fraction"),
    "heldout/accuracy_sampled": Metric("Held-out accuracy after the step, training temperature", "fraction"),
    "heldout/num_samples": Metric("Held-out rows that were asked", "count"),
    "heldout/pass@<k>": Metric(
        "Chance that one of k sampled answers passes, with eval.num_answers ≥ 2", "fraction"
    ),
    "heldout/majority@<k>": Metric("Mean reward of the answer that most of k samples give", "fraction"),
}
"""Of an evaluation; of one set or category, /set=NAME or /KEY=VALUE is added (docs/evaluation.md)."""


def describe_heldout(name: str) -> str:
    """Meaning of a metric of so many answers, or of a part of the held-out rows; "" for another."""
    measure, _, part = name.removeprefix("heldout/").partition("/")
    kind, at, _ = measure.partition("@")
    placeholder = "k" if kind == "pass" else "n"
    known = HELDOUT.get(f"heldout/{kind}@<{placeholder}>" if at else f"heldout/{kind}")
    if known is None:
        return ""
    return f"{known.meaning}{f', of {part}' if part else ''} ({known.unit})"
