"""The result of one check of a machine or an environment."""

from __future__ import annotations

from typing import Literal, NamedTuple

Status = Literal["ok", "warning", "failed"]


class CheckResult(NamedTuple):
    """One check: its name, its status, what was found, and the remedy."""

    name: str
    status: Status
    found: str
    remedy: str = ""
