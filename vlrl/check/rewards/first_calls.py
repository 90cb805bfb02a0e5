"""Each reward called on a few references before engines are started, to find one that cannot work."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from vlrl.check.data.rewards import references_of, said_trajectory
from vlrl.errors import ScoringError
from vlrl.protocols import Processor
from vlrl.scoring.compose import ComposedReward, RewardFailure
from vlrl.types import Sample, Score


def call_rewards_first(
    samples: Sequence[Sample],
    reward: ComposedReward,
    processor: Processor,
    runner: asyncio.Runner,
    tell: Callable[[str, str], None],
) -> None:
    """Score the references of a few samples, and an empty completion beside each.

    Samples that are played in an environment, or have neither answer nor target, are passed over: nobody
    knows what would be right.

    Args:
        samples: the first ones of the run.
        reward: the run's, with its workers and time limits.
        processor: spells completions.
        runner: runs what is async.
        tell: called with an event's name and a sentence if a reference scores no more than an empty
            completion.

    Raises:
        ScoringError: if no completion of any sample can be scored.
    """
    known = [(sample, texts) for sample in samples if not sample.env and (texts := references_of(sample))]
    tried = [(sample, text) for sample, texts in known for text in ("", *texts)]
    if not tried:
        return
    trajectories = [said_trajectory(sample, text, processor.encode_target) for sample, text in tried]
    numbers = [number for number, (_, texts) in enumerate(known) for _ in ("", *texts)]
    results = runner.run(reward.score_all(trajectories, groups=numbers))
    reward.take_metrics()  # what judges were asked here belongs to no step
    failures = [result for result in results if isinstance(result, RewardFailure)]
    if failures and len(failures) == len(results):
        raise ScoringError(
            f"no reference could be scored, before any engine was started: {failures[-1]}; `vlrl reward "
            "test` has the traceback, scoring.num_tried=0 leaves this out"
        )
    if failures:
        tell(
            "reward_failed_first", f"{len(failures)} of {len(results)} first calls of rewards: {failures[0]}"
        )
    scores = [result.total if isinstance(result, Score) else None for result in results]
    unpaid = [sample for sample, _ in known if not _pays(sample, tried, scores)]
    if unpaid and len(unpaid) == len(known) and not reward.optional:
        texts = references_of(unpaid[0])
        tell(
            "reference_not_rewarded",
            f"no reference scores more than an empty completion does, in any of {len(texts)} forms: for "
            f"instance {texts[0]!r:.200} of sample {unpaid[0].id!r}. If no completion can earn anything, "
            "nothing will be learnt: try `vlrl reward test`",
        )


def _pays(sample: Sample, tried: Sequence[tuple[Sample, str]], scores: Sequence[float | None]) -> bool:
    """True if a reference scores more than an empty completion, or if that is not known."""
    own = [score for (other, _), score in zip(tried, scores, strict=True) if other is sample]
    empty, *others = own
    known = [score for score in others if score is not None]
    return empty is None or not known or max(known) > empty
