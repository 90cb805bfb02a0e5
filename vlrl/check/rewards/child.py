"""`vlrl reward test` in a child process: a reward that exits, hangs or takes all memory ends no command.

    command ── what to test (pickled) ──► child
            ◄── lines of JSON: {"phase"}, then {"result"} or {"error"} ──

The child imports the reward and starts the processes that call it. Whatever the reward leaves running is
killed with the child.
"""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from vlrl.config.options import RewardConfig
from vlrl.errors import ConfigError, VlrlError


@dataclass(frozen=True, slots=True)
class TrialJob:
    """What is to be tested.

    Attributes:
        reward: with its options and adapter.
        data: samples, as `read_samples` takes them; None is a built-in set.
        overrides: of the data.
        limit: samples at most.
        margin: what no answer may earn.
        timeout_s: of one call.
        seed: of random bytes.
    """

    reward: RewardConfig
    data: str | None
    overrides: tuple[str, ...]
    limit: int
    margin: float
    timeout_s: float
    seed: int


def run_in_child(job: TrialJob, on_phase: Callable[[str], None]) -> dict[str, Any]:
    """The result of a job, see `result_of`.

    Raises:
        ConfigError: for what the child raised so, and for a reward whose import ends the process.
        VlrlError: for whatever else it raised.
    """
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-P", "-m", "vlrl.check.rewards.child"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, start_new_session=True
    ) as child:
        assert child.stdin is not None and child.stdout is not None
        try:
            with suppress(BrokenPipeError):
                child.stdin.write(pickle.dumps(job))
                child.stdin.close()
            for line in child.stdout:
                message = json.loads(line)
                if "phase" in message:
                    on_phase(message["phase"])
                elif "error" in message:
                    raise (ConfigError if message["is_config"] else VlrlError)(message["error"])
                else:
                    return dict(message["result"])
            code = child.wait()
        finally:
            with suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)  # and what the reward left running
    how = f"exit code {code}" if code >= 0 else signal.Signals(-code).name
    raise ConfigError(
        f"reward {job.reward.name!r}: importing it ended the process that tests it ({how}); "
        "take what exits out of its module"
    )


def main() -> None:
    """Test what standard input says; what a reward prints goes to stderr."""
    job: TrialJob = pickle.loads(sys.stdin.buffer.read())
    replies = os.fdopen(os.dup(1), "w", buffering=1)
    os.set_inheritable(replies.fileno(), False)
    os.dup2(2, 1)

    def reply(**message: Any) -> None:
        replies.write(json.dumps(message, default=str) + "\n")

    try:
        reply(result=_tested(job, lambda name: reply(phase=name)))
    except VlrlError as error:
        reply(error=str(error), is_config=isinstance(error, ConfigError))
    replies.flush()
    os._exit(0)  # threads of a reward's would keep it


def _tested(job: TrialJob, on_phase: Callable[[str], None]) -> dict[str, Any]:
    from vlrl.check.rewards.checks import run_checks
    from vlrl.check.rewards.result import result_of
    from vlrl.check.rewards.samples import read_samples
    from vlrl.check.rewards.trial import run_trial
    from vlrl.scoring.functions import find_reward

    function = find_reward(job.reward.name, job.reward.options, job.reward.adapter)
    samples = None if job.data is None else read_samples(job.data, list(job.overrides), job.limit)
    trial = run_trial(
        function,
        samples,
        job.data or "",
        timeout_s=job.timeout_s,
        seed=job.seed,
        limit=job.limit,
        on_phase=on_phase,
    )
    return result_of(trial, run_checks(trial, job.margin), job.margin)


if __name__ == "__main__":
    main()
