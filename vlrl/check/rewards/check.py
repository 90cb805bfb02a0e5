"""A check of a reward and what it found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from vlrl.check.rewards.trial import Try

Status: TypeAlias = Literal["ok", "warn", "fail", "info"]


@dataclass(frozen=True, slots=True, eq=False)
class Finding:
    """One completion that a check refers to."""

    attempt: Try
    why: str


@dataclass(frozen=True, slots=True)
class RewardCheck:
    """One check of a reward: its status and what was found.

    Attributes:
        name: the question in two words.
        status: only "fail" makes a reward unsound.
        found: the answer, in a line.
        findings: the completions it rests on, the worst first.
    """

    name: str
    status: Status
    found: str
    findings: Sequence[Finding] = ()
