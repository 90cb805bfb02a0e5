"""Results of a check, of a row, a source and the whole: plain records that travel between processes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from vlrl.check.data.nulls import AskedRow
from vlrl.check.splits import Split
from vlrl.config import Config
from vlrl.config.data import DatasetConfig
from vlrl.types import MediaKind

Reason = Literal[
    "unreadable row",
    "broken medium",
    "bad prompt",
    "too long",
    "no pair",
    "reward fails",
    "reward misses a field",
    "reference not rewarded",
    "duplicate",
    "contradiction",
    "duplicate id",
    "in the held-out rows",
    "medium in the held-out rows",
    "kills the reader",
]


@dataclass(frozen=True, slots=True)
class CheckedSource:
    """One source of rows in the config, and how many of them are checked.

    Attributes:
        split: which list of the config it stands in.
        section: its dotted key, for messages.
        config: how it is opened.
        num_rows: rows checked, from the first on.
    """

    split: Split
    section: str
    config: DatasetConfig
    num_rows: int


@dataclass(frozen=True, slots=True)
class Job:
    """All that a worker needs to audit any row.

    Attributes:
        config: the run's; of a bare data file, one made up around it.
        sources: in the order of the report.
        with_model: count tokens, which needs the model's processor.
        with_rewards: dry-run the rewards.
    """

    config: Config
    sources: tuple[CheckedSource, ...]
    with_model: bool
    with_rewards: bool


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a row is bad: the kind, for counting, and the sentence, for fixing."""

    reason: Reason
    message: str


@dataclass(frozen=True, slots=True)
class MediumFacts:
    """One medium as found: hash of the source's content, upright size in pixels, frames taken, tokens."""

    kind: MediaKind
    sha256: str
    height: int
    width: int
    num_frames: int = 1
    num_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class RowAudit:
    """One row as found.

    Attributes:
        source: index into Job.sources.
        row: index in its source.
        id: of the row; "row N" if it could not be read.
        place: file and line, or shard and key; empty if the source does not say.
        problems: empty if the row is good.
        media: those that could be opened.
        num_tokens: of the prompt, media included; None if they were not or could not be counted.
        prompt_sha256: hash of the prompt's text, case and white space evened out; None if unreadable.
        answer_sha256: hash of answer and target, of a preference also of what is worse and of the label.
        is_preference: it says which answer is better; a prompt may have several of them.
        is_episode: it is played: many episodes may begin with the same image.
        asked: what it asks, for null policies; None if nothing can be said of its answer.
    """

    source: int
    row: int
    id: str
    place: str = ""
    problems: tuple[Problem, ...] = ()
    media: tuple[MediumFacts, ...] = ()
    num_tokens: int | None = None
    prompt_sha256: str | None = None
    answer_sha256: str | None = None
    is_preference: bool = False
    is_episode: bool = False
    asked: AskedRow | None = None

    @property
    def content(self) -> tuple[str | None, ...]:
        """What makes two rows the same: the prompt's text and its media, in order."""
        return (self.prompt_sha256, *(medium.sha256 for medium in self.media))


@dataclass(frozen=True, slots=True)
class Checked:
    """The result of a whole check.

    Attributes:
        sources: what was checked.
        audits: every row, by source and then by index.
        notes: what could not be checked, and why.
        token_limit: longest prompt that the config leaves room for; None if tokens were not counted.
        duration_s: wall time.
    """

    sources: Sequence[CheckedSource]
    audits: Sequence[RowAudit]
    notes: Sequence[str]
    token_limit: int | None
    duration_s: float

    @property
    def bad(self) -> list[RowAudit]:
        """Rows with a problem."""
        return [audit for audit in self.audits if audit.problems]
