"""What the library that an environment comes from says of it."""

from __future__ import annotations

import re

from vlrl.env_check.episodes import Request, Watched
from vlrl.env_check.verdict import Check

TITLE = "its library's checker"
FAILURE = re.compile(r"\w*(Error|Exception): ")


def library_says(env: Watched, request: Request) -> Check:
    """An adapter's `findings()`, such as those of Gymnasium's own checker."""
    if not env.has("findings"):
        return Check(TITLE, "info", "it has none")
    findings = [str(finding) for finding in env.call("findings")]
    if any(FAILURE.match(finding) for finding in findings):
        return Check(TITLE, "fail", "refuses it", findings)
    return Check(TITLE, "warn" if findings else "ok", f"{len(findings)} warnings", findings)
