"""What all sides of train_step.py share: the job, its reward, and how the driver tells them to run blocks.

Standard library only, because TRL's environment has no vlrl in it.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TextIO

from cases import Case


class BenchmarkError(Exception):
    """The comparison could not be made, or would not be fair."""


@dataclass(frozen=True)
class Job:
    """One configuration, the same for all sides.

    A step generates `case.group_size` completions of exactly `case.completion_tokens` tokens for each of
    `case.groups` rows and takes one optimizer step on all of them. Sides that only train make their episodes
    themselves.

    Attributes:
        folder: of logs and all files of the job.
        model: a folder in Hugging Face format.
        rows: a .npz whose `images` are [rows, images per row, height, width, 3] uint8; "" for sides that only
            train.
        text: of every row, after its images.
        case: sizes of a step.
        lr: learning rate.
        betas: of AdamW.
        max_grad_norm: that gradients are clipped to.
        num_rows: rows there are.
        max_steps: steps that may be asked for.
        micro_batch: completions that TRL trains at a time.
        threads: of each side.
        seed: of everything.
        profiled_step: whose optimizer step is profiled, in a run that also keeps its timeline; -1 for none.
    """

    folder: str
    model: str
    rows: str
    text: str
    case: Case
    lr: float
    betas: tuple[float, float]
    max_grad_norm: float
    num_rows: int
    max_steps: int
    micro_batch: int
    threads: int
    seed: int
    profiled_step: int = -1

    def write(self) -> Path:
        """Save to job.json in the job's folder."""
        path = Path(self.folder) / "job.json"
        path.write_text(json.dumps(asdict(self), indent=1))
        return path

    @classmethod
    def read(cls, path: str | Path) -> Job:
        """The job that `write` saved."""
        fields = json.loads(Path(path).read_text())
        return cls(**{**fields, "betas": tuple(fields["betas"]), "case": Case(**fields["case"])})


def noise_reward(text: str) -> float:
    """A number in [0, 1) that depends on the completion's text alone: every group has variance."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big") / 2**32


class Tally:
    """What this side really generated in the current block, counted where completions are scored."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forget; a new block begins."""
        self.completions = 0
        self.prompt_tokens: set[int] = set()
        self.completion_tokens: set[int] = set()
        self.rewards: set[float] = set()

    def add(self, prompt_tokens: int, completion_tokens: int, reward: float) -> None:
        """Count one completion."""
        self.completions += 1
        self.prompt_tokens.add(prompt_tokens)
        self.completion_tokens.add(completion_tokens)
        self.rewards.add(reward)

    def as_dict(self) -> dict[str, Any]:
        """The tally as a dictionary for the pipe."""
        return {
            "completions": self.completions,
            "prompt_tokens": sorted(self.prompt_tokens),
            "completion_tokens": sorted(self.completion_tokens),
            "distinct_rewards": len(self.rewards),
        }


TALLY = Tally()
"""The process's own; vlrl loads the reward as a plug-in, a module of its own that shares only imports."""


class Pipe:
    """The side's end: a line of JSON a message. A command is a number of steps; 0 is the end."""

    def __init__(self) -> None:
        self._out: TextIO = os.fdopen(os.dup(sys.stdout.fileno()), "w", buffering=1)
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # whatever libraries print goes to the log

    def send(self, **message: Any) -> None:
        """One message to the driver."""
        self._out.write(json.dumps(message) + "\n")

    def next_block(self) -> int:
        """Wait, asleep, for the number of steps to run next."""
        return int(sys.stdin.readline().strip() or 0)

    def next_command(self) -> int | Case:
        """The number of steps to run next, or the sizes of those that follow."""
        command = json.loads(sys.stdin.readline().strip() or "0")
        return Case(**command) if isinstance(command, dict) else int(command)


class Block:
    """Step seconds of one block, taken where steps end."""

    def __init__(self, steps: int) -> None:
        """Begin now; `steps` are expected."""
        TALLY.clear()
        self.steps = steps
        self.seconds: list[float] = []
        self.parts: dict[str, list[float]] = {}
        self._last = time.perf_counter()

    def end_step(self, parts: dict[str, float], rest: str) -> bool:
        """Note the end of a step and its seconds by phase, `rest` taking what is left.

        Returns:
            True when it was the block's last.
        """
        now = time.perf_counter()
        step = now - self._last
        self.seconds.append(step)
        self._last = now
        for name, seconds in {**parts, rest: step - sum(parts.values())}.items():
            self.parts.setdefault(name, []).append(seconds)
        return len(self.seconds) >= self.steps

    def as_dict(self, **more: Any) -> dict[str, Any]:
        """The block as a dictionary for the pipe."""
        return {"seconds": self.seconds, "parts": self.parts, "tally": TALLY.as_dict(), **more}
