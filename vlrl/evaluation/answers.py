"""What each answer of a held-out row earned, without its tokens."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, Self

from vlrl.errors import ConfigError
from vlrl.parsing.extract import extract_answer
from vlrl.scoring.compose import ComposedReward
from vlrl.types import Group, Sample, Trajectory

How = Literal["greedy", "sampled"]
HOWS: tuple[How, How] = ("greedy", "sampled")

ROWS_PER_SET = 1_000_000_000
"""Where in the seeds the next set begins: they do not depend on how many rows of a set are asked."""

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
        episode: numbers of the episode, if the row is played: num_turns, invalid_fraction, and the
            environment's own at its end; empty if it failed.
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
    episode: Mapping[str, float] = field(default_factory=dict)

    def line(self) -> dict[str, Any]:
        """Line of RUN/heldout.jsonl."""
        fields = asdict(self)
        return {"accuracy": fields.pop("value"), **fields, "parts": list(self.parts)}

    @classmethod
    def of_line(cls, line: Mapping[str, Any]) -> Self:
        """The answer of such a line."""
        fields = dict(line)
        return cls(value=fields.pop("accuracy"), **fields | {"parts": tuple(fields["parts"])})


@dataclass(frozen=True, slots=True)
class HeldoutRow:
    """A held-out sample and its place.

    Attributes:
        sample: what is asked.
        set: name of its set.
        row: its number in the set.
        position: in the seeds.
        parts: of an evaluation that it belongs to: its set if there are several, each category of it there,
            and the categories of all sets.
    """

    sample: Sample
    set: str
    row: int
    position: int
    parts: tuple[str, ...]


def heldout_rows(samples: Sequence[Sample], keys: Sequence[str]) -> list[HeldoutRow]:
    """The rows of an evaluation.

    Args:
        samples: all that are asked.
        keys: of metadata, whose values are categories.

    Raises:
        ConfigError: for a key that no sample has.
    """
    known = {name for sample in samples for name in sample.metadata}
    if samples and (unknown := [key for key in keys if key not in known]):
        raise ConfigError(
            f"eval.group_by: no held-out row has {unknown[0]!r} in its metadata; there is "
            f"{', '.join(sorted(known)) or 'nothing in it'}"
        )
    names = [sample.source.removeprefix("heldout/") for sample in samples]
    places = {name: number for number, name in enumerate(dict.fromkeys(names))}
    counts, rows = Counter[str](), []
    for sample, name in zip(samples, names, strict=True):
        categories = [f"{key}={sample.metadata[key]}" for key in keys if key in sample.metadata]
        own = [f"set={name}", *(f"set={name}/{category}" for category in categories)]
        parts = (*(own if len(places) > 1 else ()), *categories)
        position = places[name] * ROWS_PER_SET + counts[name]
        rows.append(HeldoutRow(sample, name, counts[name], position, parts))
        counts[name] += 1
    return rows


def num_by_part(rows: Sequence[HeldoutRow]) -> dict[str, int]:
    """Rows of each part: a set is followed by its categories, and those of all sets come last."""
    counts = Counter(part for row in rows for part in row.parts)
    sets = {f"set={row.set}": number for number, row in reversed(list(enumerate(rows)))}
    ordered = sorted(counts, key=lambda name: (sets.get(name.partition("/")[0], len(rows)), name))
    return {name: counts[name] for name in ordered}


def answers_of(
    groups: Sequence[Group], how: How, row: HeldoutRow, reward: ComposedReward
) -> list[HeldoutAnswer]:
    """What the groups of a row earned, one for each of its agents.

    Args:
        groups: played and scored.
        how: they were generated.
        row: that was asked.
        reward: which says what a source's first reward is.
    """
    return [
        HeldoutAnswer(
            set=row.set,
            row=row.row,
            sample_id=t.sample.id,
            how=how,
            index=t.group_index,
            value=accuracy_of(t, reward),
            reward=t.score.total if t.score else None,
            vote=vote_of(t.completion),
            parts=row.parts,
            episode=episode_numbers(t),
        )
        for group in groups
        for t in group.trajectories
    ]


def episode_numbers(trajectory: Trajectory) -> dict[str, float]:
    """Numbers of an episode in an environment; empty for an answer to a question, and for one that failed."""
    if trajectory.sample.env is None or trajectory.failed:
        return {}
    turns = trajectory.turns
    said = ("success", "invalid")
    own = {name: float(value) for name, value in trajectory.info.items() if name not in said}
    invalid = sum(turn.invalid for turn in turns) / max(1, len(turns))
    return {"num_turns": float(len(turns)), "invalid_fraction": invalid, **own}


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
