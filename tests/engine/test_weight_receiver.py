"""An engine's worker takes a version of the weights as vLLM's own reload does."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from vllm.config import get_current_vllm_config_or_none

from vlrl.engine.weight_receiver import WeightReceiver
from vlrl.weights.manifest import Manifest, Segment, create_segment, plan_segment


class OneLayer(torch.nn.Module):
    """A model of vLLM's, as far as an update needs one."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(4))

    def load_weights(self, weights: Any) -> set[str]:
        """Copy what comes; the names of it."""
        for name, tensor in weights:
            self.get_parameter(name).data.copy_(tensor)
            self.config_then = get_current_vllm_config_or_none()
        return {"weight"}


class Runner:
    """A model runner that reloads as both of vLLM's do: it leaves the current config to its caller."""

    def __init__(self) -> None:
        self.model = OneLayer()

    def get_model(self) -> OneLayer:
        """The model."""
        return self.model

    def reload_weights(self, weights_iterator: Any) -> None:
        """Replace all weights."""
        self.model.load_weights(weights_iterator)


class Worker(WeightReceiver):
    """vLLM's worker with vlrl's class mixed in."""

    def __init__(self) -> None:
        self.vllm_config = SimpleNamespace(compilation_config=SimpleNamespace(custom_op_log_check=None))
        self.model_runner, self.rank = Runner(), 0


@pytest.fixture
def manifest(tmp_path: Path) -> Manifest:
    """Where a weight of ones lies."""
    planned = plan_segment(tmp_path / "segment", [("weight", "float32", (4,))])
    create_segment(planned)
    Segment(planned).flat["weight"].fill_(1.0)
    return planned


def test_weights_are_processed_under_the_engine_s_own_config(manifest: Manifest) -> None:
    """Layers that ask for vLLM's current config as they process weights raise without, as some experts do."""
    worker = Worker()
    worker.receive_weights(manifest, 1)
    assert worker.model_runner.model.weight.tolist() == [1.0] * 4
    assert worker.model_runner.model.config_then is worker.vllm_config
