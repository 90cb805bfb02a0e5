"""AdamW of weights and moments in the host's memory: torch's fused kernel, which passes over them once.

The kernel leaves the elements at a tensor's end that fill no vector to scalar operations, whose last bits
differ: so an element's would depend on how long a slice is. Here that end is computed in vectors, too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad
from torch.optim.adamw import adamw

LINE = 64
"""Elements that fill whole vectors of every processor and type."""


class HostAdamW(torch.optim.AdamW):
    """torch's AdamW, see there; an element's bits depend neither on its slice nor on threads."""

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """Update all parameters that have a gradient; there is no closure."""
        assert closure is None
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self._update(parameter, group)

    def _update(self, parameter: Any, group: dict[str, Any]) -> None:
        state = self.state[parameter]
        if not state:
            state["step"] = torch.tensor(0.0)
            state["exp_avg"], state["exp_avg_sq"] = torch.zeros_like(parameter), torch.zeros_like(parameter)
        beta1, beta2 = group["betas"]
        whole = [x.view(-1) for x in (parameter, parameter.grad, state["exp_avg"], state["exp_avg_sq"])]
        size = parameter.numel()
        ends = [x[size - size % LINE :] for x in whole]
        padded = [pad(x, (0, -len(x) % LINE)) for x in ends]
        pairs: list[list[Tensor]] = [[x[: size - size % LINE], y] for x, y in zip(whole, padded, strict=True)]
        _adamw(
            *(*pairs, [], [state["step"], state["step"].clone()]),  # torch counts both of them up
            fused=True,
            amsgrad=False,
            maximize=False,
            beta1=beta1,
            beta2=beta2,
            **{name: group[name] for name in ("lr", "eps", "weight_decay")},
        )
        for end, new in zip(ends, padded, strict=True):
            end.copy_(new[: len(end)])


_adamw: Any = adamw  # torch's decorator hides its arguments' types
