"""What a process of a run offers to whoever watches it: its metrics over HTTP, its stacks by a signal."""

from __future__ import annotations

import faulthandler
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

from vlrl.tracking.prometheus.server import MetricsServer

STACKS_SIGNAL = signal.SIGUSR2
"""At it the process writes the Python stacks of all its threads, even while it computes in C."""
STACKS_S = 2.0
"""Seconds in which it does; one that is stopped never does."""
MAX_STACK_CHARS = 8000

STATES = {
    **{"R": "computes", "S": "sleeps", "D": "waits for a disk", "T": "is stopped", "t": "is traced"},
    "Z": "is dead",
}
"""What /proc says of a process, in words."""

_stacks: dict[int, int] = {}
"""By process: the descriptor of what its stacks are written to."""


@dataclass(frozen=True, slots=True)
class ProcessFacts:
    """How a process is watched.

    Attributes:
        pid: on its node.
        stacks_file: where it writes its stacks.
        target: address and port of its metrics; "" if they are not served.
        output: files of its standard output and error.
    """

    pid: int
    stacks_file: str
    target: str = ""
    output: tuple[str, ...] = ()


def offer_stacks() -> ProcessFacts:
    """Have this process write its stacks when it is asked; `stacks_of` asks."""
    pid = os.getpid()
    if pid not in _stacks:
        _stacks[pid] = os.memfd_create("vlrl_stacks")  # without a file that a kill would leave behind
        faulthandler.register(STACKS_SIGNAL, file=_stacks[pid], all_threads=True)
    return ProcessFacts(pid, f"/proc/{pid}/fd/{_stacks[pid]}")


def serve_metrics(host: str, port: int = 0) -> int:
    """Serve what this process' libraries count (vLLM's numbers, its memory and time) to Prometheus; the port.

    Raises:
        OSError: if the port is in use.
    """
    from prometheus_client import REGISTRY

    return MetricsServer(REGISTRY, host, port).port


def state_of(pid: int) -> str:
    """What a process of this node is doing, by its letter in /proc; "" if there is none."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except OSError:
        return ""
    return stat.rpartition(")")[2].split()[0]


def stacks_of(facts: ProcessFacts) -> str:
    """What a process of this node is doing in words, and its stacks if it answers."""
    state, file = state_of(facts.pid), Path(facts.stacks_file)
    if not state or not file.exists():
        return f"process {facts.pid} is gone"
    words = f"process {facts.pid} {STATES.get(state, f'is in state {state}')}"
    if state in "TtZ":
        return f"{words} (state {state}) and does not answer"
    start = size = file.stat().st_size
    os.kill(facts.pid, STACKS_SIGNAL)
    end = time.monotonic() + STACKS_S
    while time.monotonic() < end:
        time.sleep(0.1)
        before, size = size, file.stat().st_size
        if start < before == size:
            break
    if size == start:
        return f"{words} (state {state}) and does not answer"
    with file.open(encoding="utf-8", errors="replace") as stacks:
        stacks.seek(start)
        return f"{words}:\n{stacks.read(MAX_STACK_CHARS)}"
