"""Sides taking turns in rounds, until enough rounds were quiet."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from typing import Any

from step_report import Round, describe
from step_side import CpuTimes, Side


def alternate(sides: Sequence[Side], *, steps: int, rounds: int, max_rounds: int) -> list[Round]:
    """Run rounds, in each a block of every side, until `rounds` were quiet or the limit is reached."""
    done: list[Round] = []
    while len(done) < max_rounds:
        # a b, b a, a b, …: a drift of the machine's speed hits both alike
        order = sides if len(done) % 2 == 0 else list(reversed(sides))
        done.append(run_round(order, steps))
        say(f"round {len(done)}: {describe(done[-1])}")
        if sum(r.quiet for r in done) == rounds:
            break
    return done


def run_round(sides: Sequence[Side], steps: int) -> Round:
    """One block of each side, and what else the machine did meanwhile."""
    blocks: dict[str, dict[str, Any]] = {}
    idle, others, seconds = dict.fromkeys((side.name for side in sides), 0.0), 0.0, 0.0
    cpu: dict[str, float] = {}
    for side in sides:
        begin, before = time.perf_counter(), CpuTimes.now()
        blocks[side.name] = side.run(steps)
        after = CpuTimes.now()
        seconds += time.perf_counter() - begin
        cpu[side.name] = (after.of(side.pid) - before.of(side.pid)) / steps
        own = os.getpid()  # all sides are its children
        others += after.of_others(own) - before.of_others(own)
        for other in sides:
            if other is not side:
                idle[other.name] += after.of(other.pid) - before.of(other.pid)
    idle = {name: s / seconds for name, s in idle.items()}
    return Round(blocks, idle=idle, others=others / seconds, cpu_seconds=cpu)


def say(text: str) -> None:
    """Print to standard error: standard output is for results."""
    print(text, file=sys.stderr, flush=True)
