"""Random states in checkpoints: the host's everywhere, and on a GPU the GPU's too."""

from __future__ import annotations

import pytest
import torch

from vlrl.trainer.state.rank_state import random_states, set_random_states


class Generator:
    """CUDA's, where there is none."""

    def __init__(self) -> None:
        self.state = torch.arange(16, dtype=torch.uint8)

    def get(self) -> torch.Tensor:
        return self.state.clone()

    def set(self, state: torch.Tensor) -> None:
        self.state = state


@pytest.fixture
def on_gpu(monkeypatch: pytest.MonkeyPatch) -> Generator:
    generator = Generator()
    monkeypatch.setattr(torch.cuda, "get_rng_state", generator.get)
    monkeypatch.setattr(torch.cuda, "set_rng_state", generator.set)
    return generator


def test_both_generators_go_on_where_they_were(on_gpu: Generator) -> None:
    saved = random_states("cuda")
    expected, gpu = torch.rand(3), on_gpu.get()
    on_gpu.state += 1
    torch.rand(5)
    assert set_random_states(saved, "cuda") == []
    assert torch.equal(torch.rand(3), expected)
    assert torch.equal(on_gpu.state, gpu)


def test_on_a_cpu_a_gpu_s_state_is_neither_kept_nor_needed(on_gpu: Generator) -> None:
    assert list(random_states("cpu")) == ["rng"]
    assert set_random_states(random_states("cuda"), "cpu") == []


def test_a_checkpoint_of_a_cpu_says_what_it_lacks_on_a_gpu(on_gpu: Generator) -> None:
    [sentence] = set_random_states(random_states("cpu"), "cuda")
    assert "no random state of a GPU" in sentence
