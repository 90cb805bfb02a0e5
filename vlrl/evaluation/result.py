"""What an evaluation found, as a whole and by part."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from vlrl.config import Config
from vlrl.evaluation.answers import HeldoutAnswer, HeldoutRow, How, num_by_part
from vlrl.evaluation.estimates import Estimate, episode_values, estimate, row_values
from vlrl.types import Group


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The first reward over the held-out samples; the rollouts are kept to show.

    Attributes:
        answers: what each one earned.
        num_samples: how many were asked.
        num_answers: sampled answers of each, at the training temperature.
        threshold: data.pass_threshold.
        parts: the same of the samples of one set, "set=NAME", and of those that share a value of one of
            eval.group_by, "KEY=VALUE"; of one set's, "set=NAME/KEY=VALUE".
        greedy: the rollouts of the likeliest answers.
        sampled: of those that were sampled.
    """

    answers: Sequence[HeldoutAnswer]
    num_samples: int
    num_answers: int = 1
    threshold: float = 1.0
    parts: Mapping[str, Evaluation] = field(default_factory=dict)
    greedy: Sequence[Group] = ()
    sampled: Sequence[Group] = ()

    @property
    def accuracy_greedy(self) -> float:
        """Mean over the rows of the likeliest answers."""
        return self.values()["greedy"]

    @property
    def accuracy_sampled(self) -> float:
        """Mean over the rows of the mean of their sampled answers."""
        return self.values()[f"mean@{self.num_answers}"]

    def values(self) -> dict[str, float]:
        """Each measure's mean over the rows."""
        found = row_values(self.answers, self.num_answers, self.threshold)
        return {
            name: math.fsum(values) / len(values) if values else math.nan for name, values in found.items()
        }

    def estimates(self) -> dict[str, Estimate]:
        """The same with intervals, and the numbers of episodes."""
        found = row_values(self.answers, self.num_answers, self.threshold) | episode_values(self.answers)
        counts = {name for name in found if name.startswith("episode/num_")}
        return {name: estimate(values, are_counts=name in counts) for name, values in found.items()}

    def metrics(self) -> dict[str, float]:
        """The metrics as logged."""
        values = self.values()
        found = {
            "heldout/accuracy_greedy": values.pop("greedy"),
            "heldout/accuracy_sampled": values.pop(f"mean@{self.num_answers}"),
            "heldout/num_samples": float(self.num_samples),
            **{f"heldout/{name}": value for name, value in values.items()},
        }
        for part, evaluation in self.parts.items():
            found |= {f"{name}/{part}": value for name, value in evaluation.metrics().items()}
        return found

    def summary(self) -> dict[str, Any]:
        """Summary as `vlrl eval` prints it; `parts` only if there are any."""
        found = {
            "accuracy_greedy": self.accuracy_greedy,
            "accuracy_sampled": self.accuracy_sampled,
            "num_samples": self.num_samples,
            "estimates": {name: each.loggable() for name, each in self.estimates().items()},
        }
        parts = {name: part.summary() for name, part in self.parts.items()}
        return {**found, "parts": parts} if parts else found


def evaluation_of(
    answers: Sequence[HeldoutAnswer],
    rows: Sequence[HeldoutRow],
    config: Config,
    groups: Mapping[How, Sequence[Group]],
) -> Evaluation:
    """The evaluation that answers make, and that of each part.

    Args:
        answers: of all rows, in their order.
        rows: that were asked.
        config: the whole config.
        groups: rollouts to show.
    """
    n, threshold, counts = config.eval.num_answers, config.data.pass_threshold, num_by_part(rows)
    of_part: dict[str, list[HeldoutAnswer]] = {name: [] for name in counts}
    for answer in answers:
        for name in answer.parts:
            of_part[name].append(answer)
    parts = {name: Evaluation(found, counts[name], n, threshold) for name, found in of_part.items()}
    shown = (groups.get("greedy", ()), groups.get("sampled", ()))
    return Evaluation(answers, len(rows), n, threshold, parts, *shown)
