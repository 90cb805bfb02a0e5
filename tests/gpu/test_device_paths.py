"""What else differs on an NVIDIA GPU: the vision tower's one call, fused updates, copies to the host."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from builders import make_config
from plain_model import model_of

from vlrl.model.kernels import spans
from vlrl.trainer.choices import choose_for
from vlrl.weights.staging import StagedCopies

pytestmark = pytest.mark.gpu
CUDA = torch.device("cuda")


@pytest.mark.parametrize("size", [32, 72, 80])
def test_varlen_passes_its_trial_under_ordered_sums(size: int) -> None:
    """Heads of Qwen2-VL and Qwen2.5-VL are 80 wide, those of Qwen3-VL 72."""
    torch.use_deterministic_algorithms(True)
    try:
        assert spans._failure("varlen", CUDA, spans.HeadShape(16, 16, size, torch.bfloat16)) == ""
    finally:
        torch.use_deterministic_algorithms(False)


def test_nothing_slower_is_used_in_bfloat16(tiny_model: Path) -> None:
    config = make_config(tiny_model, model={"path": str(tiny_model), "dtype": "bfloat16"})
    chosen = choose_for(model_of(tiny_model).to(torch.bfloat16), config, CUDA)
    assert [str(choice) for choice in chosen.all if choice.is_slower] == []
    assert (chosen.attention, chosen.spans) == ("flex", "varlen")


def test_staged_copies_arrive() -> None:
    sources = [torch.randn(size, device=CUDA) for size in (3, 1000, 1_000_000, 50_000_000)]
    targets = [torch.zeros(len(source)) for source in sources]
    with StagedCopies() as copies:
        for source, target in zip(sources, targets, strict=True):
            copies.copy(source, into=target)
    assert all(torch.equal(s.cpu(), t) for s, t in zip(sources, targets, strict=True))
