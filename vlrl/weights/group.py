"""Trainer rank 0 and every engine's processes as one group that broadcasts: NCCL on GPUs, gloo on CPUs.

A process group beside torch's default one, which belongs to DeepSpeed on one side and to vLLM on the other.
"""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any

import torch
from torch import distributed

from vlrl.errors import EngineError

POLL_S = 0.0005
"""Seconds between looks at a broadcast that runs."""


class WeightGroup:
    """One member of the group; member 0 sends.

    Attributes:
        address: "host:port" at which the members met.
    """

    def __init__(
        self, address: str, member: int, num_members: int, device: torch.device, timeout_s: float
    ) -> None:
        """Meet the others.

        Raises:
            EngineError: if they have not come after timeout_s.
        """
        self.address, self._timeout_s = address, timeout_s
        self._who = f"member {member} of {num_members} ({address}, weights.timeout_s={timeout_s:g})"
        host, _, port = address.rpartition(":")
        timeout = timedelta(seconds=timeout_s)
        self._group: Any  # torch's process groups have no base of which mypy knows broadcast
        try:
            store = distributed.TCPStore(  # type: ignore[attr-defined]  # public, but not exported
                host, int(port), num_members, member == 0, timeout
            )
            if device.type == "cuda":
                options = distributed.ProcessGroupNCCL.Options()
                options._timeout = timeout
                self._group = distributed.ProcessGroupNCCL(store, member, num_members, options)
            else:
                self._group = distributed.ProcessGroupGloo(store, member, num_members, timeout)
        except RuntimeError as error:
            raise EngineError(
                f"weights.transport=broadcast: {self._who} did not meet the others: {error}"
            ) from error

    def broadcast(self, buffer: torch.Tensor) -> torch.Tensor:
        """Member 0's buffer, in everybody's; they are all of one size, on the member's device.

        Raises:
            EngineError: if the others do not take part within the group's time.
        """
        options = distributed.BroadcastOptions()
        options.rootRank = options.rootTensor = 0
        end = time.monotonic() + self._timeout_s
        try:
            work = self._group.broadcast([buffer], options)
            while not work.is_completed():  # NCCL's own wait only orders streams, and knows no end
                if time.monotonic() > end:
                    raise EngineError(f"weights.transport=broadcast: {self._who} lost the others")
                time.sleep(POLL_S)
            work.wait()
        except RuntimeError as error:
            raise EngineError(f"weights.transport=broadcast: {self._who} lost the others: {error}") from error
        return buffer
