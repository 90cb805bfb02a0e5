"""An environment that failed: an episode without a result, which is not a bad result (law 7)."""

from __future__ import annotations

from typing import Literal

from vlrl.errors import VlrlError

FailureKind = Literal["raised", "hung", "died"]
HOST_CLOSED = "its host was closed"


class EnvFailure(VlrlError):
    """A call of an environment that failed: it raised, hung, died or broke the contract.

    Attributes:
        kind: it raised, or answered something that is not an answer; took too long; or its process died.
        reason: in a line; from an `EnvHost` it names the environment, the seed and the step.
        trace: the traceback if there is one.
    """

    def __init__(self, kind: FailureKind, reason: str, trace: str = "") -> None:
        super().__init__(kind, reason, trace)  # all of them: it travels between processes
        self.kind, self.reason, self.trace = kind, reason, trace

    def __str__(self) -> str:
        return self.reason
