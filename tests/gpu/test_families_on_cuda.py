"""Every family's prefix trees on an NVIDIA GPU, by the attention chosen there, as on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from forked_episodes import FORKED, Family
from torch import Tensor

from vlrl.batch import MicroBatch
from vlrl.model.attention import choose, heads_of
from vlrl.model.logprobs import DeviceBatch, TreeLogprobs
from vlrl.registry import BUILT_IN

pytestmark = pytest.mark.gpu
CPU, CUDA = torch.device("cpu"), torch.device("cuda")
TOLERANCE = {torch.float32: 1e-3, torch.bfloat16: 0.15}
"""Of a logprob in nats, and of a gradient relative to the largest."""


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("name", sorted(BUILT_IN["processors"]))
def test_trees_on_cuda_are_those_on_the_cpu(
    tiny_family: Callable[[str], Path], name: str, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)  # of the convolution that makes patches
    family = Family.open(name, tiny_family(name))
    [batch] = family.packed(family.groups(FORKED))
    expected = results(family, batch, CPU, torch.float32)
    found = results(family, batch, CUDA, dtype)
    errors = [float((found[0] - expected[0]).abs().max())]
    largest = max(float(gradient.abs().max()) for gradient in expected[1].values())
    errors += [float((found[1][n] - e).abs().max()) / largest for n, e in expected[1].items()]
    print(f"{name} {dtype}: logprobs {errors[0]:.1e} nats, gradients {max(errors[1:]):.1e}")
    assert max(errors) < TOLERANCE[dtype]


def results(
    family: Family, batch: list[MicroBatch], device: torch.device, dtype: torch.dtype
) -> tuple[Tensor, dict[str, Tensor]]:
    """Logprobs and the gradient of the loss for every parameter, on the CPU in float32."""
    model: Any = family.model.to(device, dtype)
    attention, _ = choose("auto", device, heads_of(model))
    wrapped = TreeLogprobs(
        model, temperature=1.0, banned_token_ids=family.ours.banned_token_ids, attention=attention
    )
    logprobs = torch.cat([wrapped(DeviceBatch.of(m, device))[0].float() for m in batch])
    factors = [torch.tensor(m.weights * m.advantages, device=device) for m in batch]
    gradients = family.gradients((torch.cat(factors) * logprobs).sum())
    return logprobs.detach().cpu(), {n: g.float().cpu() for n, g in gradients.items()}
