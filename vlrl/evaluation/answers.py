"""What each answer of a held-out row earned, without its tokens."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from vlrl.errors import ConfigError
from vlrl.parsing.extract import extract_answer
from vlrl.scoring.compose import ComposedReward
from vlrl.types import Group, Sample, Trajectory

How = Literal["greedy", "sampled"]
HOWS: tuple[How, How] = ("greedy", "sampled")
_BOXED = re.compile(r"\\boxed\{([^{}]*)\}")


@dataclass(frozen=True, slots=True)
class HeldoutAnswer:
    """One answer of a held-out row.

    Attributes:
        set: name of the row's set.
        row: number of the row in its set.
        sample_id: the row's id; of several agents, each one's.
        how: it was generated.
        index: which of the row's n.
        value: its source's first reward; None if it could not be scored.
        reward: the total; likewise.
        vote: what it says, for the majority.
        parts: of the evaluation that the row belongs to: "set=NAME", "KEY=VALUE".
    """

    set: str
    row: int
    sample_id: str
    how: How
    index: int
    value: float | None
    reward: float | None
    vote: str = ""
    parts: tuple[str, ...] = ()

    def line(self) -> dict[str, Any]:
        """Line of RUN/heldout.jsonl."""
        fields = asdict(self)
        return {"accuracy": fields.pop("value"), **fields, "parts": list(self.parts)}


def set_of(sample: Sample) -> str:
    """Name of a held-out sample's set."""
    return sample.source.removeprefix("heldout/")


def numbered(samples: Sequence[Sample]) -> list[tuple[int, int]]:
    """Number each sample: of its set, and of itself in there."""
    sets: dict[str, int] = {}
    counts: Counter[str] = Counter()
    found = []
    for sample in samples:
        name = set_of(sample)
        found.append((sets.setdefault(name, len(sets)), counts[name]))
        counts[name] += 1
    return found


class PartsOf:
    """Names of the parts of an evaluation that a sample belongs to."""

    def __init__(self, samples: Sequence[Sample], keys: Sequence[str]) -> None:
        """Look at what there is.

        Args:
            samples: all that are asked.
            keys: of metadata, whose values are parts.

        Raises:
            ConfigError: for a key that no sample has.
        """
        known = {name for sample in samples for name in sample.metadata}
        if samples and (unknown := [key for key in keys if key not in known]):
            raise ConfigError(
                f"eval.group_by: no held-out row has {unknown[0]!r} in its metadata; there is "
                f"{', '.join(sorted(known)) or 'nothing in it'}"
            )
        self._samples, self._keys = samples, keys
        self._several = len({set_of(sample) for sample in samples}) > 1

    def __call__(self, sample: Sample) -> tuple[str, ...]:
        """The sample's set if there are several, each category of it, and the categories of all sets."""
        categories = [f"{key}={sample.metadata[key]}" for key in self._keys if key in sample.metadata]
        if not self._several:
            return tuple(categories)
        own = f"set={set_of(sample)}"
        return (own, *(f"{own}/{category}" for category in categories), *categories)

    def counts(self) -> dict[str, int]:
        """Samples of each part: a set is followed by its categories, and those of all sets come last."""
        counts = Counter(part for sample in self._samples for part in self(sample))
        sets = [name for name in counts if name.startswith("set=") and "/" not in name]
        place = {name: number for number, name in enumerate(sets)}
        ordered = sorted(counts, key=lambda name: (place.get(name.partition("/")[0], len(sets)), name))
        return {name: counts[name] for name in ordered}


def answers_of(
    groups: Sequence[Group], how: How, row: int, reward: ComposedReward, parts: tuple[str, ...]
) -> Iterator[HeldoutAnswer]:
    """What the groups of a row earned, one for each of its agents.

    Args:
        groups: played and scored.
        how: they were generated.
        row: its number in its set.
        reward: which says what a source's first reward is.
        parts: of the evaluation that it belongs to.
    """
    for group in groups:
        for t in group.trajectories:
            total = t.score.total if t.score else None
            vote = vote_of(t.completion)
            yield HeldoutAnswer(
                set_of(t.sample),
                row,
                t.sample.id,
                how,
                t.group_index,
                accuracy_of(t, reward),
                total,
                vote,
                parts,
            )


def accuracy_of(trajectory: Trajectory, reward: ComposedReward) -> float | None:
    """The value of its source's first reward; None if it could not be scored."""
    if (score := trajectory.score) is None:
        return None
    return score.parts.get(reward.first_part(trajectory.sample.source), score.total)


def vote_of(completion: str) -> str:
    """What a completion says, for a vote: its answer tag, last box, or text after the thought."""
    said = extract_answer(completion)
    if said is None:
        said = completion.rpartition("</think>")[2]
        boxes = _BOXED.findall(said)
        said = boxes[-1] if boxes else said
    return " ".join(said.split()).casefold()
