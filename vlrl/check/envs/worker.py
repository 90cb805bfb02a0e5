"""The process in which an environment is checked: `python -m vlrl.check.envs.worker`.

Of its own, so that an environment that hangs or crashes ends this process and not the check. Reads one JSON
line {"job", "request"} and writes JSON lines: what `vlrl.check.envs.run` reads.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict
from typing import Any

from vlrl.check.envs.checks import run_checks
from vlrl.check.envs.conduct import digests_of
from vlrl.check.envs.episodes import Request, Watched
from vlrl.check.envs.speed import measure
from vlrl.errors import ConfigError


def main() -> None:
    """Do one job: "check", "digests" of the first episodes, or "bench"."""
    # Whatever an environment prints must not get among the results.
    results = os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1)
    os.dup2(2, 1)
    job = json.loads(sys.stdin.readline())
    request = Request(**job["request"])

    def write(kind: str, value: Any) -> None:
        results.write(json.dumps({kind: value}) + "\n")

    try:
        if job["job"] == "check":
            for check in run_checks(request):
                write("check", asdict(check))
        elif job["job"] == "digests":
            with Watched(request) as env:
                write("digests", digests_of(env, request))
        else:
            with Watched(request) as env:
                write("measured", measure(env, request, job["seconds"]))
    except ConfigError as error:
        write("config_error", str(error))


if __name__ == "__main__":
    main()
