"""The result of one check of a machine or an environment."""

from __future__ import annotations

from typing import Literal, NamedTuple

Status = Literal["ok", "warning", "failed"]


class CheckResult(NamedTuple):
    """One line: what was looked at, how it is, what was found, what to do about it."""

    name: str
    status: Status
    found: str
    remedy: str = ""
