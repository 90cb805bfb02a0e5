"""The result of a check of an environment."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from vlrl.check.envs.episodes import Request, Watched

Status: TypeAlias = Literal["ok", "warn", "fail", "info"]


@dataclass(frozen=True, slots=True)
class EnvCheck:
    """One check of an environment: its status and what was found.

    Attributes:
        name: the question in a few words.
        status: only "fail" breaks the contract.
        found: the answer, in a line.
        findings: what it rests on, a line each.
    """

    name: str
    status: Status
    found: str
    findings: Sequence[str] = ()


Question: TypeAlias = Callable[[Watched, Request], EnvCheck]


def raised(name: str, error: Exception) -> EnvCheck:
    """An exception, with the place in the author's own code."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = Path(__file__).parent
    theirs = [frame for frame in frames if not Path(frame.filename).is_relative_to(ours)]
    place = f"{theirs[-1].filename}:{theirs[-1].lineno}" if theirs else "?"
    return EnvCheck(name, "fail", f"raises {type(error).__name__}: {error}", [f"at {place}"])
