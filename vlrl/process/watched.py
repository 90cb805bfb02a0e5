"""What a process of a run offers to whoever watches it: its metrics over HTTP, its stacks by a signal."""

from __future__ import annotations

import os
from dataclasses import dataclass

from vlrl.machine.stacks import offer_stacks, stacks_of
from vlrl.tracking.prometheus.server import MetricsServer


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

    @classmethod
    def own(cls) -> ProcessFacts:
        """This process, which offers its stacks from now on."""
        return cls(os.getpid(), offer_stacks())

    def stacks(self) -> str:
        """What it is doing, see `vlrl.machine.stacks.stacks_of`; to be asked on its node."""
        return stacks_of(self.pid, self.stacks_file)


def serve_metrics(host: str, port: int = 0) -> int:
    """Serve what this process' libraries count (vLLM's numbers, its memory and time) to Prometheus; the port.

    Raises:
        OSError: if the port is in use.
    """
    from prometheus_client import REGISTRY

    return MetricsServer(REGISTRY, host, port).port
