"""`vlrl env check` and `bench`: start worker processes, and gather what they report into one result."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from vlrl.check.envs.checks import QUESTIONS
from vlrl.check.envs.conduct import SAME
from vlrl.check.envs.episodes import Request
from vlrl.check.envs.verdict import EnvCheck
from vlrl.errors import ConfigError, DataError

STEPS = ("construct", *QUESTIONS)
FRAME = re.compile(r'^  File "(?P<file>[^"]+)", line (?P<line>\d+) in (?P<function>.+)$', re.MULTILINE)
ANOTHER = "same in another process"


def check_env(request: Request, on_step: Callable[[str], None] = lambda step: None) -> dict[str, Any]:
    """Check an environment against its contract.

    Args:
        request: what is checked.
        on_step: called with the name of the next check.

    Returns:
        ok, and the checks; JSON-ready.

    Raises:
        ConfigError: for an unknown name, a wrong option or a wrong task.
    """
    checks: list[dict[str, Any]] = []

    def hear(kind: str, value: Any) -> None:
        if kind == "check":
            checks.append(value)
            on_step(STEPS[min(len(checks), len(STEPS) - 1)])

    on_step(STEPS[0])
    died = _worker({"job": "check", "request": asdict(request)}, hear)
    if died is not None:
        checks.append(asdict(_death(died, STEPS[min(len(checks), len(STEPS) - 1)], request)))
    place = next((i for i, c in enumerate(checks) if c["name"] == SAME and c["status"] == "ok"), None)
    if place is not None:
        on_step(ANOTHER)
        checks.insert(place + 1, asdict(_another_process(request)))
    return {
        "ok": all(check["status"] != "fail" for check in checks),
        "env": request.name,
        "options": dict(request.options),
        "task": dict(request.task),
        "episodes": request.episodes,
        "checks": checks,
    }


def bench_env(request: Request, seconds: float) -> dict[str, Any]:
    """Measure an environment in a process of its own.

    Raises:
        ConfigError: for an unknown name or a wrong option.
        DataError: if it raises, hangs or crashes.
    """
    measured: dict[str, Any] = {}

    def hear(kind: str, value: Any) -> None:
        if kind == "measured":
            measured.update(value)

    died = _worker({"job": "bench", "request": asdict(request), "seconds": seconds}, hear)
    if died is not None:
        check = _death(died, "measuring", request)
        raise DataError(f"env {request.name!r}: {check.found}; vlrl env check {request.name} says more")
    return measured


def verdict(result: Mapping[str, Any]) -> str:
    """The result in a sentence."""
    failed = [check["name"] for check in result["checks"] if check["status"] == "fail"]
    warned = sum(check["status"] == "warn" for check in result["checks"])
    if failed:
        return f"breaks the contract: {', '.join(failed)}"
    return "keeps the contract" + (f", {warned} warning{'s' if warned > 1 else ''}" if warned else "")


def _another_process(request: Request) -> EnvCheck:
    """Two fresh processes whose strings hash differently, and in which other things were done before."""
    digests: list[Any] = []
    for hash_seed in ("1", "2"):
        job = {"job": "digests", "request": asdict(request)}
        died = _worker(job, lambda kind, value: digests.append(value), hash_seed)
        if died is not None:
            return _death(died, ANOTHER, request)
    if digests[0] != digests[1]:
        found = "another process shows other episodes: nothing may hang on hash order, time or ids"
        return EnvCheck(ANOTHER, "fail", found)
    return EnvCheck(ANOTHER, "ok", "also with other hashes of strings")


def _worker(
    job: Mapping[str, Any], hear: Callable[[str, Any], None], hash_seed: str = "0"
) -> tuple[int, str] | None:
    """Run a job; None, or if the process died its exit code and the end of what it wrote."""
    command = [sys.executable, "-P", "-m", "vlrl.check.envs.worker"]
    config_error = None
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as words:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=words,
            text=True,
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
        )
        with process:
            assert process.stdin is not None and process.stdout is not None
            try:
                process.stdin.write(json.dumps(job) + "\n")
                process.stdin.close()
                for line in process.stdout:
                    ((kind, value),) = json.loads(line).items()
                    if kind == "config_error":
                        config_error = value
                    hear(kind, value)
            except BaseException:
                process.kill()
                raise
        if config_error is not None:
            raise ConfigError(config_error)
        if process.returncode == 0:
            return None
        words.seek(0)
        return process.returncode, words.read()[-20_000:]


def _death(died: tuple[int, str], step: str, request: Request) -> EnvCheck:
    """Why a worker ended before its work."""
    code, words = died
    if "Timeout (" in words:
        # faulthandler writes the innermost frame first.
        frames = [f for f in FRAME.finditer(words) if not f["file"].startswith(str(Path(__file__).parent))]
        place = [f"at {f['file']}:{f['line']} in {f['function']}" for f in frames[:1]]
        return EnvCheck(step, "fail", f"a call has not returned after {request.timeout_s:g} s", place)
    last = words.strip().splitlines()[-1:] or [""]
    if code < 0:
        return EnvCheck(step, "fail", f"the process was killed by {signal.Signals(-code).name}", last)
    return EnvCheck(step, "fail", f"the process ended with exit code {code}", last)
