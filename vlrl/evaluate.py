"""Held-out accuracy, greedy and sampled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from vlrl.config import Config
from vlrl.protocols import Policy, Processor
from vlrl.rollout import ScoreFn, rollout_groups, score_groups
from vlrl.types import Group, Sample


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Mean of the run's first reward over the held-out samples; the sampled rollouts are kept to show."""

    accuracy_greedy: float
    accuracy_sampled: float
    num_samples: int
    greedy: list[Group]
    sampled: list[Group]

    def metrics(self) -> dict[str, float]:
        """As logged."""
        return {
            "heldout/accuracy_greedy": self.accuracy_greedy,
            "heldout/accuracy_sampled": self.accuracy_sampled,
        }


async def evaluate(
    samples: Sequence[Sample], policy: Policy, processor: Processor, score: ScoreFn, config: Config
) -> Evaluation:
    """Answer every sample once greedily and once at the training temperature.

    The sampled answers use the same seeds at every evaluation, so two evaluations differ by the weights
    alone.
    """
    results: dict[bool, list[Group]] = {}
    for greedy in (True, False):
        groups = await rollout_groups(
            samples,
            policy,
            processor,
            config.rollout,
            seed_path=(config.run.seed, "evaluate"),
            group_size=1,
            greedy=greedy,
        )
        await score_groups(groups, score)
        results[greedy] = groups
    return Evaluation(
        accuracy_greedy=accuracy(results[True], config),
        accuracy_sampled=accuracy(results[False], config),
        num_samples=len(samples),
        greedy=results[True],
        sampled=results[False],
    )


def accuracy(groups: Sequence[Group], config: Config) -> float:
    """Mean of the first reward named in the config; an answer that could not be scored does not count."""
    name = config.rewards[0].name.rsplit(":", 1)[-1]
    values = [t.score.parts.get(name, t.score.total) for g in groups for t in g.trajectories if t.score]
    return sum(values) / len(values) if values else float("nan")
