"""AdamW on a CPU, block by block: what it computes on the way stays in the processor's caches.

torch's passes over whole slices ten times and makes two tensors as large as a slice. The same operations on
a block after the other give the same bits, since each works on elements by themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.optim.adamw import adamw

ELEMENTS_PER_THREAD = 2**15
"""As many as torch gives one thread at least; a block's tensors are then a megabyte for each."""


class BlockwiseAdamW(torch.optim.AdamW):
    """torch's AdamW, see there; neither fused nor of amsgrad."""

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
        weights, gradients = _blocks(parameter), _blocks(parameter.grad)
        moments = _blocks(state["exp_avg"]), _blocks(state["exp_avg_sq"])
        steps = [state["step"], *(state["step"].clone() for _ in weights[1:])]  # torch counts all of them up
        beta1, beta2 = group["betas"]
        _adamw(
            *(weights, gradients, *moments, [], steps),
            foreach=False,
            fused=False,
            amsgrad=False,
            maximize=False,
            beta1=beta1,
            beta2=beta2,
            **{name: group[name] for name in ("lr", "eps", "weight_decay")},
        )


_adamw: Any = adamw  # torch's decorator hides its arguments' types


def _blocks(tensor: Tensor) -> list[Tensor]:
    """Parts of a contiguous tensor that are views of it."""
    return list(torch.split(tensor.view(-1), ELEMENTS_PER_THREAD * torch.get_num_threads()))
